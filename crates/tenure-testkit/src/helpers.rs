//! What nearly every test needs.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::process::{Command, Stdio};

use tenure_store::{BoxFuture, Key};

/// Notes that something was left out: on standard error, and in the file that `TENURE_SKIPS` names, since the harness
/// shows nothing of a test that passes. `./test` prints and counts what is in the file. Panics on a machine that is meant
/// to check everything.
#[track_caller]
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TENURE_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("skips can be noted");
        // One write, so that the lines of several processes do not mix.
        let line = format!("{}: {}\n", Location::caller(), why.trim().replace('\n', " "));
        file.write_all(line.as_bytes()).expect("skips can be noted");
    }
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "skipped: {why}");
}

/// How often something is done: `usual` times, and `long` times in a run of `./test long`.
pub fn quota(usual: u64, long: u64) -> u64 {
    if std::env::var("TENURE_TEST_MODE").as_deref() == Ok("long") { long } else { usual }
}

/// The key of this name, which must be a good one.
#[track_caller]
pub fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

/// Runs all of them at once, each in a task of its own, and ends with the last. For [`Store`](tenure_store::Store)s whose
/// calls meet only if they come from several threads.
#[expect(clippy::disallowed_methods, reason = "racers in one task would take turns and never meet")]
pub fn race(racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'static, ()> {
    let racers: Vec<_> = racers.into_iter().map(tokio::spawn).collect();
    Box::pin(async {
        for racer in racers {
            racer.await.expect("a racer does not panic");
        }
    })
}

/// Runs a future on a small runtime of its own.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Runs a shell command; `false` if it failed.
pub fn shell(command: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}
