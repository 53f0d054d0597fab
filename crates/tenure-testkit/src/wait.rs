//! Waiting, in real time, for what other processes and threads do.

use std::time::{Duration, Instant};

/// Asks every so often until there is an answer; `None` if there is none within the limit.
pub fn wait_for<T>(limit: Duration, every: Duration, mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return Some(answer);
        }
        if began.elapsed() > limit {
            return None;
        }
        std::thread::sleep(every);
    }
}

/// Waits until it is so, which must happen within two minutes, on the busiest machine.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Duration::from_secs(120);
    let came = wait_for(limit, Duration::from_millis(2), || is_so().then_some(()));
    assert!(came.is_some(), "this did not happen within {limit:?}: {what}");
}

/// Gives other processes and threads time.
pub fn sleep_ms(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}
