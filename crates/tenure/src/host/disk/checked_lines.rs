//! How a small file of lines is written: a head that says what it is, and a foot that says that it is whole.
//!
//! ```text
//! {"logbook":"tenure","format":1,"domain":"0f3c…,time:[4026531834]+0.0"}
//! …
//! {"entries":1,"checksum":"91b2c3d4e5f60718"}
//! ```

use serde::{Deserialize, Serialize};

use crate::host::checksum::checksum;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Foot {
    entries: usize,
    checksum: String,
}

/// The text of such a file. Lines come without their ends.
pub(crate) fn encode(head: &impl Serialize, lines: impl Iterator<Item = String>) -> String {
    let mut text = line(head) + "\n";
    let mut entries = 0;
    for line in lines {
        text.push_str(&line);
        text.push('\n');
        entries += 1;
    }
    let foot = Foot { entries, checksum: check(&text) };
    text + &line(&foot) + "\n"
}

/// The lines of a file that begins with this very head; `None` if it has another, is damaged or cut short.
pub(crate) fn decode<'a>(bytes: &'a [u8], head: &impl Serialize) -> Option<Vec<&'a str>> {
    let text = str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (before, last) = text.rsplit_once('\n')?;
    let foot: Foot = serde_json::from_str(last).ok()?;
    let written = &text[..=before.len()];
    let mut lines = before.lines();
    if lines.next()? != line(head) || foot.checksum != check(written) {
        return None;
    }
    let lines: Vec<_> = lines.collect();
    (lines.len() == foot.entries).then_some(lines)
}

/// One line, without its end.
pub(crate) fn line(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("texts and numbers can be written")
}

fn check(text: &str) -> String {
    format!("{:016x}", checksum(&[text.as_bytes()]))
}
