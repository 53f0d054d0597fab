use std::path::PathBuf;
use std::sync::OnceLock;

use tenure::clock::{Clock, Domain, Instant, ManualClock, WallTime};
use tenure_store::BoxFuture;

/// The clock of one machine in a test, which knows the thread that sleeps on it: the keeper's.
#[derive(Debug)]
pub(crate) struct MachineClock {
    clock: ManualClock,
    /// The kernel's status file of the keeper's thread. Connecting is the first operation that it sleeps for, so this
    /// is set as soon as the thread runs.
    keeper: OnceLock<Option<PathBuf>>,
}

impl MachineClock {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self { clock, keeper: OnceLock::new() }
    }

    /// True if the keeper has ended, or waits for its clock, its store or a command. False while it runs or is ready to
    /// run, and before it has first slept on its clock.
    pub(crate) fn rests(&self) -> bool {
        let Some(Some(keeper)) = self.keeper.get() else { return false };
        match std::fs::read_to_string(keeper) {
            // The name of a thread, in parentheses, may contain anything.
            Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S')),
            Err(_) => true,
        }
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wall(&self) -> WallTime {
        self.clock.wall()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        self.keeper.get_or_init(stat_of_this_thread);
        self.clock.sleep_until(at)
    }

    fn domain(&self) -> Option<Domain> {
        self.clock.domain()
    }
}

fn stat_of_this_thread() -> Option<PathBuf> {
    let thread = std::fs::read_link("/proc/thread-self").ok()?;
    Some(PathBuf::from("/proc").join(thread).join("stat"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread that runs, rests and ends when the test wants")]
    fn a_keeper_rests_when_its_thread_waits_or_has_ended_and_not_before_it_came() {
        let clock = Arc::new(MachineClock::new(ManualClock::new()));
        assert!(!clock.rests(), "it has not come yet");
        let (begin, begun) = mpsc::channel::<()>();
        let (come, came) = mpsc::channel();
        let keeper = Arc::clone(&clock);
        let thread = std::thread::spawn(move || {
            drop(keeper.sleep_until(keeper.now()));
            come.send(keeper.rests()).unwrap();
            begun.recv().unwrap();
        });
        assert!(!came.recv().unwrap(), "it asks, so it runs");
        while !clock.rests() {
            std::thread::sleep(Duration::from_millis(1));
        }
        begin.send(()).unwrap();
        thread.join().unwrap();
        while !clock.rests() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
