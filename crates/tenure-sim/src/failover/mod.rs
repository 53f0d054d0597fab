//! Time from the end of a holder to the next grant, with the rule for a contender's reads next to the one before it.

mod crowd;
mod world;

use std::fmt::Write as _;
use std::time::Duration;

use tenure_core::machine::{Rules, Standard};
use tenure_core::record::Ttl;
use tenure_core::{Instant, Timing};

pub use crowd::{Crowd, crowd};
use world::FailoverWorld;

/// The rule before: a contender reads at a random phase, each three eighths of a ttl.
#[derive(Debug)]
struct RandomPhase;

impl Rules for RandomPhase {
    fn next_look(&self, _: Option<Instant>, sent: Instant, records: Ttl, jitter: u32) -> Instant {
        sent + self.poll_after(records, jitter)
    }
}

/// The rule by which contenders read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// At a random phase.
    RandomPhase,
    /// In phase with the holder.
    InPhase,
}

impl Reads {
    fn rules(self) -> &'static dyn Rules {
        match self {
            Self::RandomPhase => &RandomPhase,
            Self::InPhase => &Standard,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::RandomPhase => "random phase",
            Self::InPhase => "in phase",
        }
    }
}

/// A situation in which a holder ends while one contender waits.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Name of the situation.
    pub name: &'static str,
    /// The contender has waited for this long when the holder ends, in hundredths of a ttl.
    pub waited: (u64, u64),
    /// Renewal period of the holder; `None` for the default.
    pub period: Option<Duration>,
    /// Longest time that a call takes in each direction.
    pub way: Duration,
    /// True if the holder releases; false if it crashes.
    pub releases: bool,
    /// Goals, where there are any.
    pub goals: Option<Goals>,
}

/// Largest values, in units of the ttl.
#[derive(Clone, Copy, Debug)]
pub struct Goals {
    /// Median of the time from the end to the next grant.
    pub p50: f64,
    /// The same for 99 of 100.
    pub p99: f64,
    /// Reads of a contender per ttl.
    pub reads: f64,
}

/// The results of many ends, in units of the ttl.
#[derive(Debug)]
pub struct Takeovers {
    /// Time from the end to the next grant, sorted.
    pub spans: Vec<f64>,
    /// Reads of a waiting contender per ttl, until the end.
    pub reads: f64,
    /// Writes per ttl, until the end.
    pub writes: f64,
    /// Reads of the contender from the end to the grant.
    pub reads_after: f64,
}

impl Takeovers {
    /// The span that this many of a hundred do not exceed.
    pub fn at(&self, percent: usize) -> f64 {
        self.spans[((self.spans.len() - 1) * percent).div_ceil(100)]
    }

    /// The longest span.
    pub fn longest(&self) -> f64 {
        self.at(100)
    }

    /// True if no value exceeds its goal.
    pub fn meets(&self, goals: &Goals) -> bool {
        self.at(50) <= goals.p50 && self.at(99) <= goals.p99 && self.reads <= goals.reads
    }
}

impl Situation {
    /// A crash of a holder with the usual period, on a store of the usual speed.
    const CRASH: Self = Self {
        name: "crash; waited for 4 to 14 ttl",
        waited: (400, 1_400),
        period: None,
        way: Duration::from_millis(50),
        releases: false,
        goals: Some(Goals { p50: 0.92, p99: 1.08, reads: 4.0 }),
    };

    /// Every situation that is measured, each of a holder with a ttl of 15 s.
    pub const ALL: &[Self] = &[
        Self::CRASH,
        Self {
            name: "crash; waited for 1/2 to 1 ttl",
            waited: (50, 100),
            goals: Some(Goals { p50: 1.0, p99: 1.2, reads: 5.0 }),
            ..Self::CRASH
        },
        Self {
            name: "crash; waited for 1 to 3 ttl",
            waited: (100, 300),
            goals: Some(Goals { p50: 0.95, p99: 1.12, reads: 4.5 }),
            ..Self::CRASH
        },
        Self {
            name: "crash; period 9/20 ttl",
            period: Some(Duration::from_millis(6_750)),
            goals: Some(Goals { p50: 0.92, p99: 1.12, reads: 5.0 }),
            ..Self::CRASH
        },
        Self {
            name: "crash; period 1/4 ttl",
            period: Some(Duration::from_millis(3_750)),
            goals: Some(Goals { p50: 1.0, p99: 1.12, reads: 5.0 }),
            ..Self::CRASH
        },
        Self {
            name: "crash; period 1/10 ttl",
            period: Some(Duration::from_millis(1_500)),
            goals: Some(Goals { p50: 1.12, p99: 1.36, reads: 5.0 }),
            ..Self::CRASH
        },
        Self { name: "crash; slow calls", waited: (0, 1_400), way: SLOW_WAY, goals: None, ..Self::CRASH },
        Self { name: "release", waited: (0, 1_400), releases: true, goals: None, ..Self::CRASH },
    ];

    /// The timing of holder and contender.
    pub fn timing(&self) -> Timing {
        let timing = Timing::builder(TTL);
        let timing = self.period.into_iter().fold(timing, |timing, period| timing.period(period));
        timing.build().expect("a safe timing")
    }

    /// Lets this many holders end, one after the other.
    pub fn measure(&self, reads: Reads, ends: u64) -> Takeovers {
        let (mut spans, mut read, mut written, mut read_after) = (Vec::new(), 0.0, 0.0, 0);
        for seed in 0..ends {
            let mut world = FailoverWorld::new(seed, self.timing(), self.way);
            let holder = world.join(0, &Standard);
            let joins = world.rng.between(NANOS, 2 * NANOS);
            let contender = world.join(joins, reads.rules());
            let (least, most) = self.waited;
            let ends = joins + NANOS / 100 * world.rng.between(least, most) + world.rng.below(NANOS / 100);
            world.run_until(ends);
            read += world.members[contender].reads as f64 * NANOS as f64 / (ends - joins) as f64;
            written += world.writes as f64 * NANOS as f64 / ends as f64;
            let before = world.members[contender].reads;
            if self.releases {
                world.release(holder);
            } else {
                world.members[holder].alive = false;
            }
            let (_, granted) = world.run_until_granted(holder);
            read_after += world.members[contender].reads - before;
            spans.push((granted - ends) as f64 / NANOS as f64);
        }
        spans.sort_by(f64::total_cmp);
        let count = ends as f64;
        Takeovers {
            spans,
            reads: read / count,
            writes: written / count,
            reads_after: read_after as f64 / count,
        }
    }
}

/// Measures every situation under both rules. The table, and false if a goal is missed.
pub fn failover(ends: u64) -> (String, bool) {
    let (mut text, mut good) = (String::new(), true);
    let _ = writeln!(
        text,
        "{:<34} {:<13} {:>6} {:>6} {:>6} {:>6} {:>8} {:>9} {:>9}",
        "in units of the ttl", "reads", "p50", "p90", "p99", "max", "reads", "and after", "writes"
    );
    for situation in Situation::ALL {
        let bound = situation.timing().worst_write_outage().as_secs_f64() / TTL.as_secs_f64();
        for reads in [Reads::RandomPhase, Reads::InPhase] {
            let takeovers = situation.measure(reads, ends);
            let verdict = match &situation.goals {
                _ if reads == Reads::RandomPhase => "",
                _ if takeovers.longest() > bound => "  MISSED: the bound",
                Some(goals) if !takeovers.meets(goals) => "  MISSED",
                Some(_) => "  met",
                None => "",
            };
            good &= !verdict.contains("MISSED");
            let [p50, p90, p99, max] = [50, 90, 99, 100].map(|percent| takeovers.at(percent));
            let Takeovers { reads: before, reads_after, writes, .. } = takeovers;
            let _ = writeln!(
                text,
                "{:<34} {:<13} {p50:>6.3} {p90:>6.3} {p99:>6.3} {max:>6.3} {before:>8.2} {reads_after:>9.2} {writes:>9.2}{verdict}",
                situation.name,
                reads.words()
            );
        }
    }
    let default = Situation::CRASH.timing().worst_write_outage();
    let _ = writeln!(text, "bound of the usual timing: {:.3}", default.as_secs_f64() / TTL.as_secs_f64());
    let _ = writeln!(
        text,
        "\n{:<34} {:<13} {:>6} {:>15} {:>19} {:>24}",
        "crowd of 1,000", "reads", "reads", "most in ttl/10", "most in ttl/100", "writes at the takeover"
    );
    for reads in [Reads::RandomPhase, Reads::InPhase] {
        for (name, crowd) in ["strangers", "after a takeover"].iter().zip(crowd(1_000, reads)) {
            let verdict = if reads == Reads::RandomPhase || crowd.is_spread() { "" } else { "  MISSED" };
            good &= verdict.is_empty();
            let Crowd { reads: per_ttl, peak_in_tenth, peak_in_hundredth, writes, .. } = crowd;
            let _ = writeln!(
                text,
                "{name:<34} {:<13} {per_ttl:>6.2} {peak_in_tenth:>9.2} × avg {peak_in_hundredth:>13.2} × avg {writes:>24}{verdict}",
                reads.words()
            );
        }
    }
    (text, good)
}

/// The ttl of every holder.
const TTL: Duration = Duration::from_secs(15);
const NANOS: u64 = TTL.as_nanos() as u64;

/// A call takes almost as long as the timeout allows, which is a tenth of the ttl.
const SLOW_WAY: Duration = Duration::from_millis(745);
