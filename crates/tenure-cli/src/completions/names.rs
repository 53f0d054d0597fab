//! The names for a completion script: `tenure complete-names WORD…`. The last word is the one at the cursor.

use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tenure::{Key, Prefix};

use super::command_line::{CommandLine, WantedNames};
use crate::exit::Failure;
use crate::{output, store};

/// The first argument. Help, manual and completions do not show it.
const COMMAND: &str = "complete-names";

/// Prints the names that fit, one per line, if this process was started for that. It only reads, and prints nothing if
/// it fails: a person is at a prompt.
pub(crate) fn names_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != COMMAND {
        return None;
    }
    let words: Option<Vec<String>> = words.map(|word| word.into_string().ok()).collect();
    if let Some(line) = words.and_then(|words| CommandLine::parse(&words)) {
        let _ = output::tell(&lines(&line, &names_in_time(&line)));
    }
    // The thread may still wait for the store.
    std::process::exit(0)
}

/// The names in the store, unless that takes too long. A file system may block, so the call has a thread of its own.
#[expect(clippy::disallowed_methods, reason = "the process exits without waiting for this thread")]
fn names_in_time(line: &CommandLine) -> Vec<Key> {
    let (send, names) = mpsc::channel();
    let (url, wanted, typed) = (line.store.clone(), line.wanted, line.typed.clone());
    let started = thread::Builder::new().spawn(move || {
        let found = names_in_store(url.as_deref(), wanted, &typed);
        let _ = send.send(found.unwrap_or_default());
    });
    if started.is_err() {
        return Vec::new();
    }
    names.recv_timeout(LIMIT).unwrap_or_default()
}

fn names_in_store(url: Option<&str>, wanted: WantedNames, typed: &str) -> Result<Vec<Key>, Failure> {
    let store = store::choose_for_reading(url)?;
    store::block_on(async {
        let Some(coordinator) = store.connect_to_read().await? else { return Ok(Vec::new()) };
        Ok(match wanted {
            WantedNames::Groups => coordinator.slot_groups().await?,
            // A prefix covers complete parts of a name.
            WantedNames::Keys => {
                let complete = typed.rsplit_once('/').map_or("", |(complete, _)| complete);
                coordinator.list(&Prefix::parse(complete)?).await?
            }
        })
    })
}

/// The lines for the shell.
fn lines(line: &CommandLine, names: &[Key]) -> String {
    let fitting = names.iter().map(Key::as_str).filter(|name| name.starts_with(&line.typed) && is_safe(name));
    fitting.take(NAMES_MAX).map(|name| format!("{}\n", &name[line.kept..])).collect()
}

/// True if every shell takes the name for one word without a meaning. A shell inserts it as it is, and other users may
/// have chosen it.
fn is_safe(name: &str) -> bool {
    !name.starts_with('-') && name.chars().all(|next| next.is_alphanumeric() || "._/-@%+,:".contains(next))
}

/// Longest wait at a prompt.
const LIMIT: Duration = Duration::from_secs(1);

/// More names than a person reads.
const NAMES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_shell_interprets_are_offered() {
        for name in ["backup", "billing/nightly-2", "a.b_c@d%e+f,g:h", "Ünï/键", "7"] {
            assert!(is_safe(name), "{name}");
        }
        for name in [
            "a b",
            "a\tb",
            "a\nb",
            "$(id)",
            "`id`",
            "a;b",
            "a&b",
            "a|b",
            "a>b",
            "a'b",
            "a\"b",
            "a\\b",
            "a*b",
            "a?b",
            "[a]",
            "{a}",
            "~a",
            "!a",
            "#a",
            "=a",
            "-rf",
            "a\u{202e}b",
            "a\u{200b}b",
            "a\u{1b}[2J",
        ] {
            assert!(!is_safe(name), "{name:?}");
        }
    }
}
