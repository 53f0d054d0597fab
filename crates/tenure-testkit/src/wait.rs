//! Waits, in real time, for other processes and threads.

use std::time::{Duration, Instant};

/// Calls `answer` at this interval until it returns `Some`; `None` if that does not happen within the limit.
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

/// Waits until `is_so` returns true. Panics after two minutes, which is enough on the busiest machine.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Duration::from_secs(120);
    let came = wait_for(limit, Duration::from_millis(2), || is_so().then_some(()));
    assert!(came.is_some(), "this did not happen within {limit:?}: {what}");
}

/// Sleeps, to give other processes and threads time.
pub fn sleep_ms(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}
