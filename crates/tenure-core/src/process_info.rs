use std::ffi::OsStr;
use std::sync::Arc;

use crate::{Holder, text};

/// Description of the process behind a lease, for people who look at the lease. No decision depends on it.
///
/// Everyone who may read the store sees it. Texts are made valid for a record: on one line, and within the limit of
/// their length. So no text makes a grant fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    host: Option<Arc<str>>,
    pid: Option<u32>,
    user: Option<Arc<str>>,
    container: Option<Arc<str>>,
    command: Option<Arc<str>>,
}

impl ProcessInfo {
    /// The longest host, user or container, in bytes.
    pub const TEXT_MAX: usize = Holder::TEXT_MAX;

    /// The longest command line, in bytes.
    pub const COMMAND_MAX: usize = 1024;

    /// Sets the name of the host.
    pub fn with_host(mut self, name: &str) -> Self {
        self.host = shown(name, Self::TEXT_MAX);
        self
    }

    /// Sets the process id, as the process itself sees it.
    pub fn with_pid(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
        self
    }

    /// Sets the user that the process runs as.
    pub fn with_user(mut self, name: &str) -> Self {
        self.user = shown(name, Self::TEXT_MAX);
        self
    }

    /// Sets the container of the process.
    pub fn with_container(mut self, id: &str) -> Self {
        self.container = shown(id, Self::TEXT_MAX);
        self
    }

    /// Sets the command line, from the program and its arguments. **Arguments may contain secrets**: set it only if
    /// every reader of the store may see them.
    ///
    /// Words with spaces are quoted. Bytes that are not text are replaced.
    pub fn with_command<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        let mut line = String::new();
        for word in words {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&quoted(&word.as_ref().to_string_lossy()));
            if line.len() > Self::COMMAND_MAX {
                break;
            }
        }
        self.command = shown(&line, Self::COMMAND_MAX);
        self
    }

    /// The name of the host, if it is set.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The process id, if it is set.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The user, if it is set.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The container, if it is set.
    pub fn container(&self) -> Option<&str> {
        self.container.as_deref()
    }

    /// The command line, if it is set. A longer one ends with an ellipsis.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// True if nothing is set. Then the record has no process.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the command line to the text in a record.
    pub(crate) fn with_command_text(mut self, line: &str) -> Self {
        self.command = shown(line, Self::COMMAND_MAX);
        self
    }
}

/// The text on one line, of at most `max` bytes; `None` if it is empty.
fn shown(text: &str, max: usize) -> Option<Arc<str>> {
    if text.is_empty() {
        return None;
    }
    let line = if text.len() <= max {
        text.to_owned()
    } else {
        format!("{}{ELLIPSIS}", text::beginning(text, max - ELLIPSIS.len()))
    };
    Some(text::on_one_line(&line).into())
}

/// A word of a command line, in quotes if a reader could not tell where it ends.
fn quoted(word: &str) -> String {
    let is_plain =
        |next: char| !next.is_whitespace() && !next.is_control() && !"'\"\\`$&|;<>()*?#".contains(next);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

const ELLIPSIS: &str = "…";

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn command(words: &[&str]) -> String {
        ProcessInfo::default().with_command(words).command().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_command_line_shows_where_its_words_end() {
        assert_eq!(
            command(&["pg_dump", "--file=/tmp/a.sql", "billing"]),
            "pg_dump --file=/tmp/a.sql billing"
        );
        assert_eq!(
            command(&["sh", "-c", "echo it's $HOME; sleep 1"]),
            r"sh -c 'echo it'\''s $HOME; sleep 1'"
        );
        assert_eq!(command(&["x", "", "*"]), "x '' '*'");
        assert_eq!(command(&[]), "");
    }

    #[test]
    fn a_long_command_line_ends_with_an_ellipsis_within_the_limit() {
        for words in [vec!["x".repeat(10_000)], vec!["é".repeat(5_000)], vec!["𝄞".to_owned(); 9_000]] {
            let info = ProcessInfo::default().with_command(&words);
            let line = info.command().unwrap();
            assert!(
                (ProcessInfo::COMMAND_MAX - 4..=ProcessInfo::COMMAND_MAX).contains(&line.len()),
                "{line}"
            );
            assert!(line.ends_with('…'));
        }
        let fits = "x".repeat(ProcessInfo::COMMAND_MAX);
        assert_eq!(command(&[&fits]), fits);
    }

    #[test]
    fn control_characters_and_bytes_that_are_no_text_are_replaced() {
        assert_eq!(command(&["a\0b\n\x1b[2J\u{9b}"]), "'a b  [2J '");
        let info = ProcessInfo::default().with_command([OsStr::from_bytes(b"a\xff\xfeb")]);
        assert_eq!(info.command(), Some("a\u{fffd}\u{fffd}b"));
        let info = ProcessInfo::default().with_host(&"h\n".repeat(300)).with_user("\0").with_container("");
        let host = info.host().unwrap();
        assert!(host.len() <= ProcessInfo::TEXT_MAX && !host.contains('\n'), "{host:?}");
        assert_eq!((info.user(), info.container()), (Some(" "), None));
    }
}
