use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::{Domain, Instant};
use crate::host::checksum::checksum;
use crate::host::simulation::{Duty, does};

/// A small file of lines: a head with its kind and clock domain, the entries, and a foot with a checksum.
///
/// ```text
/// {"logbook":"tenure","format":1,"domain":"0f3c…,time:[4026531834]+0.0"}
/// …
/// {"entries":1,"checksum":"91b2c3d4e5f60718"}
/// ```
pub(crate) trait Page: Default {
    type Entry: Serialize + DeserializeOwned;

    /// The first part of the files' names.
    const PREFIX: &'static str;

    /// The first line.
    fn head(domain: &Domain) -> impl Serialize;

    fn entries(&self) -> impl Iterator<Item = &Self::Entry>;

    /// Adds an entry if there is room for it, and if it is not from the future.
    fn add(&mut self, entry: Self::Entry, now: Instant);

    fn encode(&self, domain: &Domain) -> String {
        let mut text = line(&Self::head(domain));
        let mut entries = 0;
        for entry in self.entries() {
            text += &line(entry);
            entries += 1;
        }
        let foot = Foot { entries, checksum: check(&text) };
        text + &line(&foot)
    }

    /// The page in a file; `None` if it is damaged, cut short, or has another head.
    fn decode(bytes: &[u8], domain: &Domain, now: Instant) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let (before, _) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let (written, last) = text.split_at(before.len() + 1);
        let foot: Foot = serde_json::from_str(last).ok()?;
        let lines = if does(Duty::CheckDomainOfPage) {
            written.strip_prefix(&line(&Self::head(domain)))?
        } else {
            written.split_once('\n')?.1
        };
        if foot.checksum != check(written) {
            return None;
        }
        let entries = lines.lines().map(serde_json::from_str).collect::<Result<Vec<_>, _>>().ok()?;
        if entries.len() != foot.entries {
            return None;
        }
        let mut page = Self::default();
        entries.into_iter().for_each(|entry| page.add(entry, now));
        Some(page)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Foot {
    entries: usize,
    checksum: String,
}

/// One line of a page, with its end.
pub(crate) fn line(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("texts and numbers can be written") + "\n"
}

fn check(text: &str) -> String {
    format!("{:016x}", checksum(&[text.as_bytes()]))
}
