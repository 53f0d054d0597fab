//! What nearly every test needs.

use tenure_store::{BoxFuture, Key};

/// Says loudly that something was left out. A machine that is meant to check everything may not leave anything out.
#[track_caller]
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "skipped: {why}");
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
