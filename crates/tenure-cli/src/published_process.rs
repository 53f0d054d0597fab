//! The process that the grants of this command write into the record.

use std::ffi::OsString;

use tenure::ProcessInfo;

use crate::output::without_handles;

/// This process and the command that it runs, unless that is hidden.
pub(crate) fn supervising(command: &[OsString], hide: bool) -> ProcessInfo {
    let process = tenure::this_process();
    if hide { process } else { process.with_command(command.iter().map(without_secrets)) }
}

/// The script that acquires a handle. This process ends before the work under the lease begins.
pub(crate) fn calling_script() -> ProcessInfo {
    tenure::this_process().with_pid(std::os::unix::process::parent_id())
}

/// A word without the secrets that this program can recognise: handles, and passwords in URLs.
fn without_secrets(word: &OsString) -> String {
    without_passwords(&without_handles(&word.to_string_lossy()))
}

/// The text with `scheme://user:…@host` instead of each URL with a password.
fn without_passwords(text: &str) -> String {
    let mut parts = text.split_inclusive("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|next: char| next.is_whitespace() || "'\"".contains(next)).unwrap_or(part.len());
        // The last one: a password may contain the character itself.
        let password = part[..end].rfind('@').and_then(|at| Some((part[..at].find(':')? + 1, at)));
        match password {
            Some((begin, at)) => shown.extend([&part[..begin], "…", &part[at..]]),
            None => shown.push_str(part),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_and_passwords_in_urls_are_not_published() {
        for (word, shown) in [
            ("postgres://ann:s3cret@db/jobs", "postgres://ann:…@db/jobs"),
            ("--url=https://ann:a@b:c/d@host:80/x", "--url=https://ann:…@host:80/x"),
            ("curl http://u:p@h; curl 'ftp://v:q@i'", "curl http://u:…@h; curl 'ftp://v:…@i'"),
            ("http://host:80/path", "http://host:80/path"),
            ("https://ann@host/", "https://ann@host/"),
            ("tenure1_eyJ-z_9", "tenure1_…"),
            ("://", "://"),
        ] {
            assert_eq!(without_secrets(&word.into()), shown);
        }
    }

    #[test]
    fn a_hidden_command_is_not_published() {
        let command = ["sleep", "100"].map(OsString::from);
        assert_eq!(supervising(&command, false).command(), Some("sleep 100"));
        assert_eq!(supervising(&command, true).command(), None);
        assert!(supervising(&command, true).pid().is_some());
    }
}
