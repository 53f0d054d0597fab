use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// Boot-time stamps of one actor, in its own file.
///
/// A stamp is in the page cache as soon as it is written, so it outlives even an actor that is killed.
#[derive(Debug)]
pub(crate) struct Stamps {
    file: File,
}

/// One actor, from its first stamp to its last.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    /// `label.pid.first`.
    pub(crate) name: String,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// Two actors under one lease whose times from the first stamp to the last overlap.
#[derive(Debug)]
pub(crate) struct Overlap {
    pub(crate) earlier: String,
    pub(crate) later: String,
    pub(crate) millis: f64,
}

impl Stamps {
    pub(crate) fn create(directory: &Path, label: &str) -> std::io::Result<Self> {
        let name = format!("{label}.{}.{}", std::process::id(), boot_time());
        let file = OpenOptions::new().append(true).create_new(true).open(directory.join(name))?;
        Ok(Self { file })
    }

    /// Records that the actor acted at this instant.
    pub(crate) fn add(&mut self, instant: i64) -> std::io::Result<()> {
        self.file.write_all(&instant.to_le_bytes())
    }
}

impl Act {
    pub(crate) fn is(&self, label: &str) -> bool {
        self.name.split('.').next() == Some(label)
    }
}

/// Nanoseconds of `CLOCK_BOOTTIME`.
pub(crate) fn boot_time() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// All actors that left a stamp, in the order of their first stamps.
pub(crate) fn acts(directory: &Path) -> Vec<Act> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut acts: Vec<Act> = files
        .filter_map(|entry| {
            let bytes = fs::read(entry.path()).ok()?;
            let stamp = |at: usize| Some(i64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
            let name = entry.file_name().into_string().ok()?;
            Some(Act { name, first: stamp(0)?, last: stamp((bytes.len() / 8 - 1) * 8)? })
        })
        .collect();
    acts.sort_by_key(|act| act.first);
    acts
}

/// Pairs of actors that overlap and have different labels. Actors with the same label belong to one term.
pub(crate) fn overlaps(acts: &[Act]) -> Vec<Overlap> {
    let mut found = Vec::new();
    let label = |act: &Act| act.name.split('.').next().map(str::to_owned);
    for (index, earlier) in acts.iter().enumerate() {
        for later in acts[index + 1..].iter().take_while(|later| later.first < earlier.last) {
            if label(earlier) != label(later) {
                let nanos = earlier.last.min(later.last) - later.first;
                let (earlier, later) = (earlier.name.clone(), later.name.clone());
                found.push(Overlap { earlier, later, millis: nanos as f64 / 1e6 });
            }
        }
    }
    found
}
