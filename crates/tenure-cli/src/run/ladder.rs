use std::time::Duration;

use tenure::Timing;
use tenure::clock::Instant;

use super::lateness::Lateness;
use super::until::{Times, Until};

/// The steps by which one guard stops the tree: TERM, KILL after the grace, and KILL again until no process is left.
///
/// It does no I/O: the time and an event go in, the actions of the guard come out. Supervisor and watchdog have one
/// each, so that either stops the tree by the same rules when the other cannot.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    guard: Guard,
    grace: Duration,
    /// The least time between KILL and the deadline.
    margin: Duration,
    lateness: Lateness,
    /// The current end of the lease; `None` before the grant.
    until: Option<Until>,
    phase: Phase,
    child_is_dead: bool,
    /// Instant since which KILL reaches no process although one is left.
    stuck_since: Option<Instant>,
}

/// The guard that a ladder belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Supervisor,
    Watchdog,
}

/// The phase of a guard. It never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// TERM was sent; KILL follows at this instant at the latest.
    Stopping {
        kill_at: Instant,
    },
    /// KILL is sent until no process is left.
    Killing,
}

/// An event that a guard passes to its ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// The lease is granted or renewed.
    Held(Until),
    /// The child has ended.
    ChildEnded,
    /// The tree must be stopped with TERM and grace.
    Stop,
    /// The other guard has sent TERM. KILL at this instant at the latest.
    TermSent { kill_at: Instant },
    /// The tree must be killed at once.
    Kill,
    /// The guard checks the clock.
    Time,
}

/// An action of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// TERM to every process of the tree. KILL follows at this instant at the latest.
    Term { kill_at: Instant },
    /// KILL to every process of the tree, for the first time.
    Kill,
    /// KILL once more: a process that was forked during a sweep is found by the next.
    KillAgain,
}

impl Ladder {
    pub(super) fn new(guard: Guard, timing: Timing, now: Instant) -> Self {
        Self {
            guard,
            grace: timing.grace(),
            margin: timing.margin(),
            lateness: Lateness::new(now),
            until: None,
            phase: Phase::Running,
            child_is_dead: false,
            stuck_since: None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn child_is_dead(&self) -> bool {
        self.child_is_dead
    }

    /// The times at which this guard stops the tree unless the lease is renewed before; `None` before the grant.
    pub(super) fn times(&self) -> Option<Times> {
        Some(self.until?.times_if_late(self.grace, self.margin, &self.lateness))
    }

    /// Takes in an event, and returns the actions that are due.
    pub(super) fn step(&mut self, now: Instant, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        match input {
            Input::Held(until) => self.until = Some(until),
            Input::ChildEnded => self.child_is_dead = true,
            Input::Stop => actions.extend(self.terminate(now)),
            Input::TermSent { kill_at } => {
                self.stop_by(kill_at);
            }
            Input::Kill if self.phase != Phase::Killing => actions.push(self.kill()),
            Input::Kill => {}
            Input::Time => {
                if self.term_at().is_some_and(|at| at <= now) {
                    actions.extend(self.terminate(now));
                }
                match self.phase {
                    Phase::Stopping { kill_at } if self.kill_at(kill_at) <= now => actions.push(self.kill()),
                    Phase::Killing => actions.push(Action::KillAgain),
                    Phase::Running | Phase::Stopping { .. } => {}
                }
            }
        }
        actions
    }

    /// The instant at which this guard must next check the clock; `None` if it only waits for events.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Running => self.term_at(),
            Phase::Stopping { kill_at } => Some(self.kill_at(kill_at)),
            Phase::Killing => Some(self.sweep_at(now)),
        }
    }

    /// Takes in a sweep that reached a process, or none. True if no sweep has reached one for so long that the rest
    /// cannot be killed.
    pub(super) fn note_sweep(&mut self, now: Instant, reached: bool) -> bool {
        if reached {
            self.stuck_since = None;
            return false;
        }
        *self.stuck_since.get_or_insert(now) + self.guard.stuck_after() <= now
    }

    /// The instant of the next sweep. Unkillable processes are tried less and less often.
    pub(super) fn sweep_at(&self, now: Instant) -> Instant {
        let stuck = self.stuck_since.map_or(Duration::ZERO, |since| now.since(since));
        now + (stuck / 10).clamp(self.guard.sweep_pause(), PAUSE_MAX)
    }

    /// Takes in a timer that was due at `due` and woke the guard at `now`. `measure` returns the instant at which the
    /// guard has done the work of a sweep.
    pub(super) fn note_wakeup(&mut self, due: Instant, now: Instant, measure: impl FnOnce() -> Instant) {
        // A guard that is late for the end of the tree itself has no time to measure, and waits for no renewal.
        if self.phase == Phase::Running && self.times().is_some_and(|times| now < times.term_at) {
            self.lateness.note(due, measure());
        } else {
            self.lateness.note_at_the_end(due, now);
        }
    }

    /// The lateness of this guard, if it is the only reason to stop the tree at `now`.
    pub(super) fn late(&self, now: Instant) -> Option<Duration> {
        let in_time = self.until?.times(self.grace, self.margin);
        (self.times()? < in_time && now < in_time.term_at).then(|| self.lateness.worst())
    }

    /// Time since the deadline, if it has passed.
    pub(super) fn overrun(&self, now: Instant) -> Option<Duration> {
        let deadline = self.until?.deadline;
        (deadline <= now).then(|| now.since(deadline))
    }

    fn terminate(&mut self, now: Instant) -> Option<Action> {
        if self.phase != Phase::Running {
            return None;
        }
        Some(Action::Term { kill_at: self.stop_by(now + self.grace) })
    }

    fn kill(&mut self) -> Action {
        self.phase = Phase::Killing;
        Action::Kill
    }

    /// Enters the phase of TERM. Neither a renewal nor a second TERM delays KILL.
    fn stop_by(&mut self, kill_at: Instant) -> Instant {
        let kill_at = self.kill_at(kill_at);
        match &mut self.phase {
            phase @ Phase::Running => *phase = Phase::Stopping { kill_at },
            Phase::Stopping { kill_at: before } => *before = kill_at.min(*before),
            Phase::Killing => {}
        }
        kill_at
    }

    /// The instant of TERM, unless another guard sends it.
    fn term_at(&self) -> Option<Instant> {
        // The watchdog stops the processes that outlive the child. A watchdog that does not is replaced.
        let leaves_it = self.child_is_dead && self.guard == Guard::Supervisor;
        let times = self.times().filter(|_| self.phase == Phase::Running && !leaves_it);
        times.map(|times| times.term_at + self.guard.term_delay())
    }

    /// This instant, or that of the lease if it is earlier.
    fn kill_at(&self, kill_at: Instant) -> Instant {
        self.times().map_or(kill_at, |times| kill_at.min(times.kill_at))
    }
}

impl Guard {
    /// The supervisor sends TERM itself, if it can. The watchdog waits this long for it, so that the child gets one
    /// TERM, not two.
    fn term_delay(self) -> Duration {
        Duration::from_millis(match self {
            Self::Supervisor => 0,
            Self::Watchdog => 30,
        })
    }

    /// Time until KILL is sent again.
    fn sweep_pause(self) -> Duration {
        Duration::from_millis(match self {
            Self::Supervisor => 20,
            Self::Watchdog => 10,
        })
    }

    /// Time for processes that may not be signalled to end by themselves, as those that supervise others do.
    fn stuck_after(self) -> Duration {
        Duration::from_millis(match self {
            Self::Supervisor => 1_000,
            Self::Watchdog => 500,
        })
    }
}

/// Longest time between two sweeps.
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn timing(grace: u64) -> Timing {
        let margin = Duration::from_millis(150);
        let built = Timing::builder(Duration::from_secs(15));
        built.grace(Duration::from_millis(grace)).margin(margin).build().unwrap()
    }

    /// A lease until this instant, whose next renewal is answered at 6 s at the latest.
    fn until(deadline: u64) -> Until {
        Until { deadline: at(deadline), renewed_by: at(6_000), answer: Duration::from_secs(1) }
    }

    /// A guard with a grace of four seconds, of a lease until 15 s: TERM at 10.85 s and KILL at 14.85 s.
    fn ladder(guard: Guard) -> Ladder {
        let mut ladder = Ladder::new(guard, timing(4_000), at(0));
        assert_eq!(ladder.next(at(0)), None, "nothing is granted yet");
        assert_eq!(ladder.step(at(0), Input::Held(until(15_000))), []);
        ladder
    }

    #[test]
    fn term_comes_at_its_time_and_kill_after_the_grace() {
        for (guard, term_at) in [(Guard::Supervisor, 10_850), (Guard::Watchdog, 10_880)] {
            let mut ladder = ladder(guard);
            assert_eq!(ladder.next(at(1)), Some(at(term_at)));
            assert_eq!(ladder.step(at(term_at - 1), Input::Time), []);
            assert_eq!(ladder.step(at(term_at), Input::Time), [Action::Term { kill_at: at(14_850) }]);
            assert_eq!(ladder.step(at(14_849), Input::Time), []);
            assert_eq!(ladder.next(at(14_849)), Some(at(14_850)));
            assert_eq!(ladder.step(at(14_850), Input::Time), [Action::Kill]);
            assert_eq!(ladder.step(at(14_860), Input::Time), [Action::KillAgain]);
        }
    }

    #[test]
    fn a_lease_that_is_renewed_in_time_stops_nothing() {
        let mut ladder = ladder(Guard::Watchdog);
        for deadline in (15_000..100_000).step_by(5_000) {
            assert_eq!(ladder.step(at(deadline - 4_150), Input::Held(until(deadline + 5_000))), []);
            assert_eq!(ladder.step(at(deadline), Input::Time), []);
        }
    }

    #[test]
    fn a_renewal_after_term_does_not_delay_kill() {
        let mut ladder = ladder(Guard::Supervisor);
        assert_eq!(ladder.step(at(12_000), Input::Stop), [Action::Term { kill_at: at(14_850) }]);
        assert_eq!(ladder.step(at(12_001), Input::Held(until(30_000))), []);
        assert_eq!(ladder.step(at(12_002), Input::TermSent { kill_at: at(20_000) }), []);
        assert_eq!(ladder.step(at(12_003), Input::Stop), []);
        assert_eq!(ladder.step(at(14_850), Input::Time), [Action::Kill]);
    }

    #[test]
    fn a_guard_that_wakes_up_after_both_times_sends_both_signals_at_once() {
        let mut ladder = ladder(Guard::Watchdog);
        let kill_at = at(14_850);
        assert_eq!(ladder.step(at(16_000), Input::Time), [Action::Term { kill_at }, Action::Kill]);
        assert_eq!(ladder.overrun(at(16_000)), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_definite_loss_kills_without_a_grace() {
        let mut ladder = ladder(Guard::Supervisor);
        assert_eq!(ladder.step(at(1), Input::Kill), [Action::Kill]);
        assert_eq!(ladder.step(at(2), Input::Kill), [], "once");
        assert_eq!(ladder.step(at(3), Input::Stop), []);
        assert_eq!(ladder.phase(), Phase::Killing);
    }

    #[test]
    fn a_supervisor_leaves_processes_that_outlive_the_child_to_the_watchdog() {
        let mut supervisor = ladder(Guard::Supervisor);
        assert_eq!(supervisor.step(at(1), Input::ChildEnded), []);
        assert_eq!((supervisor.next(at(2)), supervisor.step(at(20_000), Input::Time)), (None, vec![]));
        let mut watchdog = ladder(Guard::Watchdog);
        assert_eq!(watchdog.step(at(1), Input::ChildEnded), []);
        assert_eq!(watchdog.step(at(2), Input::Stop), [Action::Term { kill_at: at(4_002) }]);
    }

    #[test]
    fn a_late_guard_is_distinguished_from_one_that_is_in_time() {
        let mut ladder = ladder(Guard::Supervisor);
        assert_eq!(ladder.late(at(10_000)), None);
        ladder.note_wakeup(at(1_000), at(1_500), || at(1_600));
        assert_eq!(ladder.times().unwrap(), Times { term_at: at(9_750), kill_at: at(13_750) });
        assert_eq!(ladder.late(at(9_750)), Some(Duration::from_millis(600)), "with the work of a sweep");
        assert_eq!(ladder.late(at(10_850)), None, "it is time anyway");
        ladder.note_wakeup(at(9_750), at(10_500), || unreachable!("it has no time to measure"));
    }

    #[test]
    fn a_process_that_cannot_be_killed_is_reported_and_retried_less_often() {
        for (guard, patience) in [(Guard::Supervisor, 1_000), (Guard::Watchdog, 500)] {
            let mut ladder = ladder(guard);
            assert!(!ladder.note_sweep(at(0), false));
            assert!(!ladder.note_sweep(at(patience - 1), false));
            assert!(ladder.note_sweep(at(patience), false));
            assert_eq!(ladder.sweep_at(at(5_000)), at(5_500));
            assert_eq!(ladder.sweep_at(at(90_000)), at(91_000));
            assert!(!ladder.note_sweep(at(90_000), true), "one was reached");
            assert!(!ladder.note_sweep(at(90_001), false));
        }
    }

    /// An event, with its delay in milliseconds after the previous one.
    #[derive(Clone, Copy, Debug)]
    enum Happens {
        Renewed,
        ChildEnded,
        Stop,
        TermSent { kill_in: u64 },
        Kill,
        WokeLate { by: u64 },
        Woke,
    }

    fn happens() -> impl Strategy<Value = (u64, Happens)> {
        let what = prop_oneof![
            6 => Just(Happens::Renewed),
            1 => Just(Happens::ChildEnded),
            1 => Just(Happens::Stop),
            1 => (0..9_000u64).prop_map(|kill_in| Happens::TermSent { kill_in }),
            1 => Just(Happens::Kill),
            3 => (0..3_000u64).prop_map(|by| Happens::WokeLate { by }),
            3 => Just(Happens::Woke),
        ];
        (0..7_000u64, what)
    }

    /// A guard that checks its clock when the ladder says so.
    struct Simulated {
        ladder: Ladder,
        now: Instant,
        /// The instant by which KILL must have been sent after TERM.
        stopped: Option<Instant>,
        terms: usize,
        kills: usize,
    }

    impl Simulated {
        fn step(&mut self, input: Input) {
            for action in self.ladder.step(self.now, input) {
                match action {
                    Action::Term { kill_at } => {
                        self.terms += 1;
                        self.must_kill_by(kill_at);
                        assert_eq!(self.kills, 0, "no TERM after KILL");
                    }
                    Action::Kill => self.kills += 1,
                    Action::KillAgain => assert_eq!(self.kills, 1, "KILL comes first"),
                }
            }
        }

        fn must_kill_by(&mut self, at: Instant) {
            self.stopped = Some(self.stopped.map_or(at, |before| before.min(at)));
        }

        fn sleep_until(&mut self, end: Instant) {
            while self.kills == 0
                && let Some(next) = self.ladder.next(self.now)
                && next <= end
            {
                self.now = self.now.max(next);
                self.step(Input::Time);
            }
            self.now = self.now.max(end);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn kill_is_sent_by_kill_at_for_all_events_in_any_order(
            supervisor: bool, grace in 0..4_000u64, all in proptest::collection::vec(happens(), 1..30),
        ) {
            let guard = if supervisor { Guard::Supervisor } else { Guard::Watchdog };
            let ladder = Ladder::new(guard, timing(grace), at(0));
            let mut run = Simulated { ladder, now: at(0), stopped: None, terms: 0, kills: 0 };
            let grace = Duration::from_millis(grace);
            let held = |now: Instant| Until {
                deadline: now + Duration::from_secs(15),
                renewed_by: now + Duration::from_secs(6),
                answer: Duration::from_secs(1),
            };
            let mut until = held(run.now);
            run.step(Input::Held(until));
            let mut killed = false;
            let mut left_to_the_watchdog = false;
            for (gap, what) in all {
                run.sleep_until(run.now + Duration::from_millis(gap));
                match what {
                    Happens::Renewed => {
                        until = held(run.now);
                        run.step(Input::Held(until));
                    }
                    Happens::ChildEnded => {
                        left_to_the_watchdog = supervisor;
                        run.step(Input::ChildEnded);
                    }
                    Happens::Stop => run.step(Input::Stop),
                    Happens::TermSent { kill_in } => {
                        let kill_at = run.now + Duration::from_millis(kill_in);
                        run.must_kill_by(kill_at);
                        run.step(Input::TermSent { kill_at });
                    }
                    Happens::Kill => {
                        killed = true;
                        run.step(Input::Kill);
                    }
                    Happens::WokeLate { by } => {
                        let (due, now) = (run.now - Duration::from_millis(by), run.now);
                        run.ladder.note_wakeup(due, now, || now);
                    }
                    Happens::Woke => run.step(Input::Time),
                }
                // Everything that is due at this instant.
                run.sleep_until(run.now);
                let times = until.times(grace, Duration::from_millis(150));
                // A watchdog with less grace than its slack sends both signals at the end of the slack.
                let kill_at = times.kill_at.max(times.term_at + guard.term_delay());
                let overdue = killed
                    || run.stopped.is_some_and(|at| at <= run.now)
                    || (kill_at <= run.now && (run.stopped.is_some() || !left_to_the_watchdog));
                prop_assert!(!overdue || run.kills > 0, "{what:?} at {:?}: no KILL by {kill_at:?}", run.now);
                prop_assert!(run.terms <= 1 && run.kills <= 1);
                prop_assert_eq!(run.kills > 0, run.ladder.phase() == Phase::Killing);
            }
        }
    }
}
