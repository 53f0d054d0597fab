use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::drops::Drops;
use super::{DriverFocus, DriverMutant, DriverOutcome, DriverSeed, Reached};
use crate::fleet::{TWICE_EVERY, cpu_time, wall_time};
use crate::{Fleet, Invariant, Tally, Violation, tally};

/// Result of many seeds of the driver.
#[derive(Debug)]
pub struct DriverRun {
    /// Number of seeds.
    pub seeds: u64,
    /// Faults of the network.
    pub tally: Tally,
    /// Other faults and states.
    pub reached: BTreeMap<Reached, u64>,
    /// Futures that users dropped.
    pub drops: Drops,
    /// Seeds in which an invariant was broken, each with its configuration.
    pub violations: Vec<(u64, Violation, String)>,
    /// CPU time used.
    pub cpu: Duration,
    /// Wall time used.
    pub wall: Duration,
}

impl DriverRun {
    /// Least number of seeds for the quotas to apply: fewer cannot be expected to reach every rare state.
    pub const QUOTA_SEEDS: u64 = 1000;

    /// The faults, the states and the drops of futures that are below their quota for this number of seeds, in words.
    pub fn below_quota(&self) -> Vec<String> {
        let reached = Reached::ALL
            .iter()
            .map(|what| (what.words(), what.quota(), self.reached.get(what).copied().unwrap_or_default()));
        let mut missed = self.tally.below_quota_of_driver(self.seeds);
        missed.extend(tally::missed(reached, self.seeds));
        missed.extend(self.drops.below_quota(self.seeds));
        missed
    }
}

/// Result of the hunt for a mutant of the driver.
#[derive(Debug)]
pub struct DriverHunt {
    /// The mutant.
    pub mutant: &'static DriverMutant,
    /// The first seed in which its invariant caught it.
    pub caught: Option<(u64, Violation)>,
    /// Number of seeds that other invariants caught.
    pub by_others: BTreeMap<String, u64>,
    /// Number of seeds that ran.
    pub seeds: u64,
    /// Wall time used.
    pub wall: Duration,
}

impl Fleet {
    /// Runs `seeds` seeds of the driver from `first` on. It runs one seed in 256 twice, and the second run must give the
    /// same trace.
    pub fn run_driver(&self, first: u64, seeds: u64, focus: DriverFocus) -> DriverRun {
        let (cpu, wall) = (cpu_time(), wall_time());
        let run = DriverRun {
            seeds,
            tally: Tally::new(),
            reached: BTreeMap::new(),
            drops: Drops::default(),
            violations: Vec::new(),
            cpu,
            wall,
        };
        let run = Mutex::new(run);
        self.for_each_block(first, seeds, |numbers| {
            for number in numbers {
                let seed = DriverSeed::new(number).focus(focus).minutes(self.minutes);
                let outcome = seed.run();
                let violation = outcome.violation.clone().or_else(|| differs(number, &seed, &outcome));
                let mut run = run.lock().expect("no worker panicked");
                run.tally.add(&outcome.tally);
                for (what, count) in outcome.reached {
                    *run.reached.entry(what).or_default() += count;
                }
                run.drops.add(&outcome.drops);
                run.violations.extend(violation.map(|violation| (number, violation, outcome.config)));
            }
        });
        let mut run = run.into_inner().expect("no worker panicked");
        run.violations.sort_by_key(|(number, ..)| *number);
        (run.cpu, run.wall) = (cpu_time() - cpu, wall_time() - wall);
        run
    }

    /// Hunts a mutant of the driver in up to `seeds` seeds, until its invariant catches it.
    pub fn hunt_driver(&self, mutant: &'static DriverMutant, first: u64, seeds: u64) -> DriverHunt {
        let wall = wall_time();
        let mut hunt =
            DriverHunt { mutant, caught: None, by_others: BTreeMap::new(), seeds: 0, wall: Duration::ZERO };
        while hunt.caught.is_none() && hunt.seeds < seeds {
            let round = if hunt.seeds == 0 { FIRST_ROUND } else { ROUND }.min(seeds - hunt.seeds);
            let found = Mutex::new(Vec::new());
            self.for_each_block(first + hunt.seeds, round, |numbers| {
                for number in numbers {
                    let outcome = DriverSeed::new(number).minutes(self.minutes).with(mutant).run();
                    if let Some(violation) = outcome.violation {
                        found.lock().expect("no worker panicked").push((number, violation));
                    }
                }
            });
            let mut found = found.into_inner().expect("no worker panicked");
            found.sort_by_key(|(number, _)| *number);
            for (number, violation) in found {
                if violation.invariant == mutant.caught_by {
                    hunt.caught.get_or_insert((number, violation));
                } else {
                    *hunt.by_others.entry(violation.invariant.to_string()).or_default() += 1;
                }
            }
            hunt.seeds += round;
        }
        hunt.wall = wall_time() - wall;
        hunt
    }
}

/// S10: the same seed gives the same trace.
fn differs(number: u64, seed: &DriverSeed, outcome: &DriverOutcome) -> Option<Violation> {
    if !number.is_multiple_of(TWICE_EVERY) {
        return None;
    }
    let again = seed.run();
    (again.hash != outcome.hash).then(|| {
        let sentence = format!(
            "the trace of the first run is {:016x}, that of the second {:016x}",
            outcome.hash, again.hash
        );
        Violation { invariant: Invariant::S10, at: 0, sentence }
    })
}

/// Number of seeds of the first round of a hunt, which catches most mutants.
const FIRST_ROUND: u64 = 10;

/// Number of seeds of each further round.
const ROUND: u64 = 100;
