use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::{Focus, Invariant, Mutant, Outcome, Seed, Tally, Violation, report};

/// Runs many seeds on all cores. The result does not depend on the number of cores.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Number of threads.
    pub workers: usize,
    /// Simulated minutes during which faults strike in each seed.
    pub minutes: u64,
}

/// Result of many seeds.
#[derive(Clone, Debug)]
pub struct Run {
    /// Number of seeds.
    pub seeds: u64,
    /// Their focus.
    pub focus: Focus,
    /// Counts of everything that happened.
    pub tally: Tally,
    /// Seeds in which an invariant was broken, each with its configuration.
    pub violations: Vec<(u64, Violation, String)>,
    /// CPU time used.
    pub cpu: Duration,
    /// Wall time used.
    pub wall: Duration,
}

/// Result of the hunt for a mutant.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The mutant.
    pub mutant: &'static Mutant,
    /// The first seed that caught it, and the violation.
    pub caught: Option<(u64, Violation)>,
    /// Number of seeds in the sample that caught it, and the size of the sample: the chance that a single seed catches
    /// it.
    pub share: (u64, u64),
    /// Wall time used.
    pub wall: Duration,
}

impl Fleet {
    /// A fleet on all cores.
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { workers: cores, minutes: Seed::MINUTES }
    }

    /// Runs `seeds` seeds from `first` on, under the standard rules. It runs one seed in 256 twice, and the second run
    /// must give the same trace.
    pub fn run(&self, first: u64, seeds: u64, focus: Focus) -> Run {
        let (cpu, wall) = (cpu_time(), wall_time());
        let found = Mutex::new((Tally::new(), Vec::new()));
        self.for_each_block(first, seeds, |numbers| {
            let (mut tally, mut violations) = (Tally::new(), Vec::new());
            for number in numbers {
                let outcome = self.run_seed(number, focus);
                tally.add(&outcome.tally);
                let violation = outcome.violation.clone().or_else(|| self.differs(number, focus, &outcome));
                violations.extend(violation.map(|violation| (number, violation, outcome.config)));
            }
            let mut found = found.lock().expect("no worker panicked");
            found.0.add(&tally);
            found.1.append(&mut violations);
        });
        let (tally, mut violations) = found.into_inner().expect("no worker panicked");
        violations.sort_by_key(|(number, ..)| *number);
        Run { seeds, focus, tally, violations, cpu: cpu_time() - cpu, wall: wall_time() - wall }
    }

    /// Runs one seed. If the code under test panics, prints the command that replays the seed, then continues the
    /// panic.
    fn run_seed(&self, number: u64, focus: Focus) -> Outcome {
        let run = std::panic::catch_unwind(|| self.seed(number, focus).run());
        run.unwrap_or_else(|panic| {
            eprintln!(
                "seed {number} panicked\n  replay: {}",
                report::replay(&self.seed(number, focus), None)
            );
            std::panic::resume_unwind(panic)
        })
    }

    /// Hunts a mutant in up to `seeds` seeds: runs a sample to measure how often the mutant is caught, then continues
    /// until it is caught.
    pub fn hunt(&self, mutant: &'static Mutant, first: u64, seeds: u64) -> Hunt {
        let wall = wall_time();
        let sample = seeds.min(SAMPLE);
        let mut caught = self.catches(mutant, first, sample);
        let share = (caught.len() as u64, sample);
        let mut begun = sample;
        while caught.is_empty() && begun < seeds {
            let round = SAMPLE.min(seeds - begun);
            caught = self.catches(mutant, first + begun, round);
            begun += round;
        }
        let caught = caught.into_iter().min_by_key(|(number, _)| *number);
        Hunt { mutant, caught, share, wall: wall_time() - wall }
    }

    /// Seeds in which the invariant of a mutant catches it.
    fn catches(&self, mutant: &'static Mutant, first: u64, seeds: u64) -> Vec<(u64, Violation)> {
        let caught = Mutex::new(Vec::new());
        self.for_each_block(first, seeds, |numbers| {
            for number in numbers {
                if let Some(violation) = self.seed(number, mutant.focus).with(mutant).run().violation {
                    caught.lock().expect("no worker panicked").push((number, violation));
                }
            }
        });
        caught.into_inner().expect("no worker panicked")
    }

    fn seed(&self, number: u64, focus: Focus) -> Seed {
        Seed::new(number).minutes(self.minutes).focus(focus)
    }

    /// S10: the same seed gives the same trace.
    fn differs(&self, number: u64, focus: Focus, outcome: &Outcome) -> Option<Violation> {
        if !number.is_multiple_of(TWICE_EVERY) {
            return None;
        }
        let again = self.seed(number, focus).run();
        (again.hash != outcome.hash).then(|| {
            let sentence = format!(
                "the trace of the first run is {:016x}, that of the second {:016x}",
                outcome.hash, again.hash
            );
            Violation { invariant: Invariant::S10, at: 0, sentence }
        })
    }

    /// Distributes all seed numbers to the workers, in small blocks.
    #[expect(clippy::disallowed_methods, reason = "the fleet owns its threads")]
    pub(crate) fn for_each_block(&self, first: u64, count: u64, work: impl Fn(std::ops::Range<u64>) + Sync) {
        let next = AtomicU64::new(0);
        let worker = || {
            loop {
                let begin = next.fetch_add(BLOCK, Ordering::Relaxed);
                if begin >= count {
                    break;
                }
                work(first + begin..first + (begin + BLOCK).min(count));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.workers {
                scope.spawn(worker);
            }
            worker();
        });
    }
}

impl Default for Fleet {
    fn default() -> Self {
        Self::new()
    }
}

/// Number of seeds in a block.
const BLOCK: u64 = 4;

/// Number of seeds per round of a hunt.
const SAMPLE: u64 = 200;

/// One seed in this many runs twice.
pub(crate) const TWICE_EVERY: u64 = 256;

pub(crate) fn cpu_time() -> Duration {
    to_duration(clock_gettime(ClockId::ProcessCPUTime))
}

pub(crate) fn wall_time() -> Duration {
    to_duration(clock_gettime(ClockId::Monotonic))
}

fn to_duration(time: rustix::time::Timespec) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
