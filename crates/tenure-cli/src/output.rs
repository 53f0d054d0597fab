//! Standard output and standard error.

use std::io::{ErrorKind, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use serde::Serialize;
use tenure::Handle;

use crate::exit::Failure;

/// Writes an answer to standard output. Styles are removed unless it is a terminal, or `CLICOLOR_FORCE` is set.
///
/// A reader that stops early (`tenure ls | head -1`) is no error.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    tell(text).map(drop)
}

/// Writes to standard output. Returns false if its reader has exited.
pub(crate) fn tell(text: &str) -> Result<bool, Failure> {
    match write(text) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(write_failure(error)),
    }
}

/// Writes a JSON answer to standard output: one object on one line.
pub(crate) fn answer_json(object: &impl Serialize) -> Result<(), Failure> {
    answer(&json_line(object))
}

/// Writes an answer that must arrive: a missing reader is a failure.
pub(crate) fn deliver(text: &str) -> Result<(), Failure> {
    write(text).map_err(write_failure)
}

/// Writes a JSON answer that must arrive.
pub(crate) fn deliver_json(object: &impl Serialize) -> Result<(), Failure> {
    deliver(&json_line(object))
}

fn write(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn write_failure(error: std::io::Error) -> Failure {
    Failure::unavailable(format!(
        "the answer could not be written to standard output: {error}. Free some space, or write elsewhere"
    ))
}

/// A JSON object on one line.
pub(crate) fn json_line(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("all names are texts, and no writing can fail") + "\n"
}

/// Writes a line to standard error. A failed write is ignored: there is no other place to report it.
pub(crate) fn say(line: &str) {
    // In one write, so that it does not mix with the output of other processes.
    let _ = anstream::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Prints a warning on standard error: the command continues, or has done what it could.
pub(crate) fn warn(sentence: &str, json: bool) {
    if json {
        say(&serde_json::json!({ "warning": { "message": sentence } }).to_string());
    } else {
        say(&format!("tenure: {}", plain(sentence)));
    }
}

/// Writes a line to standard error without blocking. If there is no room (a full pipe, a terminal stopped by Ctrl-S),
/// the line is dropped: renewals and the killing of processes must not wait for it.
pub(crate) fn say_without_waiting(line: &str) {
    let there = std::io::stderr();
    let is_full = poll(&mut [PollFd::new(&there, PollFlags::OUT)], Some(&READ_WITHIN)) == Ok(0);
    if !is_full {
        say(line);
    }
}

/// Longest wait for a slow reader.
const READ_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Untrusted text, safe for a terminal: characters that move the cursor, change colours or change the writing direction
/// are shown as escapes.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for next in text.chars() {
        if next.is_control() || is_invisible(next) {
            plain.extend(next.escape_default());
        } else {
            plain.push(next);
        }
    }
    plain
}

/// The text without the secrets of handles: of each handle, only the common prefix is left.
pub(crate) fn without_handles(text: &str) -> String {
    let mut parts = text.split(Handle::PREFIX);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|next: char| next.is_ascii_alphanumeric() || "-_".contains(next));
        shown.push_str(Handle::PREFIX);
        if rest.len() < part.len() {
            shown.push('…');
        }
        shown.push_str(rest);
    }
    shown
}

/// Direction marks, line separators, and characters without width: names that look the same should be the same.
fn is_invisible(next: char) -> bool {
    matches!(
        next,
        '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_would_interpret_are_shown_as_escapes() {
        assert_eq!(plain("web-1 Ünï 键"), "web-1 Ünï 键");
        assert_eq!(plain("\x1b[31mred\x07\r\n\u{9b}"), "\\u{1b}[31mred\\u{7}\\r\\n\\u{9b}");
        assert_eq!(plain("a\u{202e}b\u{200b}\u{2028}"), "a\\u{202e}b\\u{200b}\\u{2028}");
    }

    #[test]
    fn only_the_prefix_of_a_handle_is_shown() {
        assert_eq!(without_handles("no 'tenure1_eyJ-z_9' found. See"), "no 'tenure1_…' found. See");
        assert_eq!(without_handles("tenure1_a tenure1_b/tenure1_c"), "tenure1_… tenure1_…/tenure1_…");
        assert_eq!(without_handles("which begins with tenure1_"), "which begins with tenure1_");
    }
}
