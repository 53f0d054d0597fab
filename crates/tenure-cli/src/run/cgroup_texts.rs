use std::fs::File;
use std::io::{self, Read};

/// Mounts and cgroups of this process, as the kernel lists them. Each text is empty if it cannot be read.
///
/// The kernel takes longer to write them than all other files of a run in `/proc`, so one reading answers several questions.
#[derive(Clone, Debug)]
pub(super) struct CgroupTexts {
    /// `/proc/self/mountinfo`.
    pub(super) mounts: String,
    /// `/proc/self/cgroup`.
    pub(super) own: String,
}

impl CgroupTexts {
    pub(super) fn read() -> Self {
        let text = |path| read(path).unwrap_or_default();
        Self { mounts: text("/proc/self/mountinfo"), own: text("/proc/self/cgroup") }
    }
}

/// Such a file has no size, so `fs::read_to_string` would begin with a few bytes and read many times.
fn read(path: &str) -> io::Result<String> {
    let mut text = String::with_capacity(USUAL);
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Length of most texts: two calls read one.
const USUAL: usize = 8 * 1024;
