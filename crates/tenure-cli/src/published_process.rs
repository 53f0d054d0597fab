//! The process that the grants of this command write into the record.

use std::ffi::OsString;

use tenure::{ProcessInfo, Survivors};

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

/// The text with `scheme://user:…@host` instead of each URL with a password, and `password=…`.
fn without_passwords(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (scheme, after) = rest.split_at(at + "://".len());
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        let (url, next) = after.split_at(end);
        shown.push_str(scheme);
        // The last one: a password may contain the character itself.
        match url.rfind('@').map(|at| url.split_at(at)) {
            // A user name of a web server may be a token.
            Some((_, host)) if scheme.contains("http") => shown.extend(["…", host]),
            Some((user, host)) => match user.split_once(':') {
                Some((name, _)) => shown.extend([name, ":…", host]),
                None => shown.push_str(url),
            },
            None => shown.push_str(url),
        }
        rest = next;
    }
    shown.push_str(rest);
    without_parameters(&shown)
}

/// The text with `password=…` instead of each password that is a parameter.
fn without_parameters(text: &str) -> String {
    const NAME: &str = "password=";
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find(NAME) {
        let (before, value) = rest.split_at(at + NAME.len());
        let end = value.find(|next: char| next.is_whitespace() || next == '&').unwrap_or(value.len());
        shown.extend([before, "…"]);
        rest = &value[end..];
    }
    shown + rest
}

/// The processes of a command that outlives its lease. Their command lines are those of this machine, as `ps` shows them, but
/// messages about them reach the logs of other jobs.
pub(crate) fn without_secrets_in(mut survivors: Survivors) -> Survivors {
    for process in &mut survivors.processes {
        process.command = without_secrets(&OsString::from(&process.command));
    }
    survivors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_and_passwords_in_urls_are_not_published() {
        for (word, shown) in [
            ("postgres://ann:s3cret@db/jobs", "postgres://ann:…@db/jobs"),
            ("postgres://ann:s'3\"cret@db/jobs", "postgres://ann:…@db/jobs"),
            ("redis://u:p://w@h", "redis://u:…@h"),
            ("postgres://db/jobs?user=ann&password=s3cret&x=1", "postgres://db/jobs?user=ann&password=…&x=1"),
            ("--Password=s3cret", "--Password=…"),
            ("--url=https://ann:a@b:c/d@host:80/x", "--url=https://…@host:80/x"),
            ("curl http://u:p@h; curl 'ftp://v:q@i'", "curl http://…@h; curl 'ftp://v:…@i'"),
            ("https://ghp_TOKEN@example.org/x", "https://…@example.org/x"),
            ("http://host:80/path", "http://host:80/path"),
            ("postgres://ann@host/", "postgres://ann@host/"),
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
