//! What nearly every test needs.

use tenure_store::Key;

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

/// Runs a future on a small runtime of its own.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
