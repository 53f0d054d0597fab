//! Helpers that nearly every test needs.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::process::{Command, Stdio};

use tenure_store::{BoxFuture, Key};

/// Notes that a test left something out: on standard error, and in the file that `TENURE_SKIPS` names, because the
/// harness shows no output of a passing test. `./test` prints and counts the lines of that file. Panics if `CI` is
/// `true`, because that machine must check everything.
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

/// Number of repetitions: `usual`, or `long` in a run of `./test long`.
pub fn quota(usual: u64, long: u64) -> u64 {
    if std::env::var("TENURE_TEST_MODE").as_deref() == Ok("long") { long } else { usual }
}

/// The key with this name, which must be valid.
#[track_caller]
pub fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

/// Runs all racers at once, each in its own task, and returns when the last one has ended. For
/// [`Store`](tenure_store::Store)s whose calls can collide only if they come from several threads.
#[expect(clippy::disallowed_methods, reason = "racers in one task would take turns and never meet")]
pub fn race(racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'static, ()> {
    let racers: Vec<_> = racers.into_iter().map(tokio::spawn).collect();
    Box::pin(async {
        for racer in racers {
            racer.await.expect("a racer does not panic");
        }
    })
}

/// Runs a future on its own small runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Runs a shell command; `false` if it failed.
pub fn shell(command: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}
