use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::machine::Standard;

use super::world::FailoverWorld;
use super::{NANOS, Reads, Situation};

/// Reads of many contenders of one key.
#[derive(Debug)]
pub struct Crowd {
    /// True if the contenders have seen no other contender yet.
    pub strangers: bool,
    /// Reads per contender and ttl.
    pub reads: f64,
    /// The most reads in a tenth of a ttl, as a multiple of the average.
    pub peak_in_tenth: f64,
    /// The same for a hundredth of a ttl.
    pub peak_in_hundredth: f64,
    /// Number of writes of contenders since the holder before crashed, up to the next grant and one ttl after it.
    pub writes: u64,
}

impl Crowd {
    /// True if the reads do not come all at once. A contender that is alone must read just after each renewal, and strangers
    /// cannot know that they are not alone: each of them reads once after a renewal, within a twentieth of a ttl. Contenders
    /// that know of others read at random phases.
    pub fn is_spread(&self) -> bool {
        let (tenth, hundredth) = if self.strangers { (4.0, 9.0) } else { (1.5, 2.5) };
        self.peak_in_tenth <= tenth && self.peak_in_hundredth <= hundredth
    }
}

/// Lets this many contenders wait for one key under this rule: first as strangers, which have seen no other contender, and
/// then after the crash of their holder, when all know that they are many.
pub fn crowd(contenders: usize, reads: Reads) -> [Crowd; 2] {
    let mut world = FailoverWorld::new(1, Situation::CRASH.timing(), Duration::from_millis(50));
    let holder = world.join(0, &Standard);
    for _ in 0..contenders {
        let at = world.rng.between(NANOS, 2 * NANOS);
        world.join(at, reads.rules());
    }
    world.run_until(SETTLES + NANOS);
    let strangers = Crowd { strangers: true, ..count(&mut world, contenders, 0) };
    let before = world.writes;
    world.members[holder].alive = false;
    let (_, granted) = world.run_until_granted(holder);
    world.run_until(granted + NANOS);
    let writes = world.writes - before;
    world.run_until(granted + SETTLES);
    [strangers, count(&mut world, contenders, writes)]
}

/// Counts the reads of the next ttls.
fn count(world: &mut FailoverWorld, contenders: usize, writes: u64) -> Crowd {
    world.reads.clear();
    let (from, span) = (world.now, TTLS * NANOS);
    world.run_until(from + span);
    let peak = |window: u64| {
        let mut windows: BTreeMap<u64, u64> = BTreeMap::new();
        for at in &world.reads {
            *windows.entry((at - from) / window).or_default() += 1;
        }
        let average = world.reads.len() as f64 * window as f64 / span as f64;
        windows.values().max().map_or(0.0, |most| *most as f64 / average)
    };
    Crowd {
        strangers: false,
        reads: world.reads.len() as f64 / contenders as f64 / TTLS as f64,
        peak_in_tenth: peak(NANOS / 10),
        peak_in_hundredth: peak(NANOS / 100),
        writes,
    }
}

/// Time until every contender has its rhythm.
const SETTLES: u64 = 4 * NANOS;

/// Number of ttls during which reads are counted.
const TTLS: u64 = 10;
