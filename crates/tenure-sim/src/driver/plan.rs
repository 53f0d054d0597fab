use std::num::NonZero;
use std::time::Duration;

use tenure::CoordinatorBuilder;
use tenure_store::{Guarantees, Key, Reach, StoreClock};

use super::DriverFocus;
use super::outage::OutagePlan;
use crate::rng::Rng;
use crate::swarm::Network;
use crate::time::{MILLI, SECOND};

/// The configuration of a seed: what exists, and which faults may strike. Chances are per thousand.
#[derive(Clone, Debug)]
pub(super) struct DriverPlan {
    pub(super) focus: DriverFocus,
    pub(super) machines: Vec<MachinePlan>,
    /// The machine of each process.
    pub(super) processes: Vec<usize>,
    /// Number of concurrent users in a process.
    pub(super) users: usize,
    pub(super) keys: Vec<Key>,
    /// The group of slots, and its first size.
    pub(super) group: Key,
    pub(super) slots: u16,
    /// Plain keys.
    pub(super) entries: Vec<Key>,
    pub(super) ttls: Vec<u64>,
    network: Network,
    healed: Network,
    pub(super) guarantees: Guarantees,
    pub(super) lies: bool,
    /// True if one key has foreign bytes.
    pub(super) foreign: bool,
    pub(super) witnesses: bool,
    /// True if witnesses are on a file system in memory, so that no disk is waited for when a nonce is listed.
    pub(super) witnesses_in_memory: bool,
    /// True if locks of witnesses are lost at once, unseen.
    pub(super) loses_locks: bool,
    pub(super) keys_max: usize,
    /// Half of the longest time between two faults; zero for none.
    pub(super) fault_every: u64,
    pub(super) preemption: u32,
    pub(super) preemption_most: u64,
    pub(super) store_panics: u32,
    pub(super) user_panics: u32,
    pub(super) hint_loss: u32,
    pub(super) unwatchable: u32,
    pub(super) disk_failure: u32,
    pub(super) slow_disk: u32,
    /// True if the sightings and the verdict on the store are kept in pages on each machine.
    pub(super) logbook: bool,
    pub(super) page_failure: u32,
    pub(super) page_damage: u32,
    pub(super) no_thread: u32,
    /// Chance that a future of the driver is dropped at some poll.
    pub(super) drops: u32,
    /// Chance that an act of a user is a shutdown.
    pub(super) shutdowns: u32,
    /// Calls of a coordinator that may be in flight at the same time.
    pub(super) calls_max: NonZero<usize>,
    /// The outage of a scenario with many leases.
    pub(super) outage: Option<OutagePlan>,
}

/// The configuration of a machine.
#[derive(Clone, Debug)]
pub(super) struct MachinePlan {
    /// Time since its boot at the start of the seed.
    pub(super) boot: u64,
    pub(super) rate: u64,
    pub(super) wall_offset: u64,
}

impl DriverPlan {
    pub(super) fn draw(rng: &mut Rng, focus: DriverFocus) -> Self {
        let calm = focus.is_calm();
        let paced = focus == DriverFocus::Paced || (focus == DriverFocus::None && rng.chance(100));
        let machines = if focus == DriverFocus::Witnesses { 1 } else { rng.between(1, 3) };
        let machines: Vec<_> = (0..machines).map(|_| MachinePlan::draw(rng)).collect();
        let processes = if focus == DriverFocus::Crowded { 1 } else { rng.between(2, 4) };
        let processes = (0..processes).map(|_| rng.index(machines.len())).collect();
        let keys = match focus {
            DriverFocus::Keys => 6,
            DriverFocus::Paced => 1,
            DriverFocus::Crowded => CROWDED_KEYS,
            _ => rng.between(1, 3),
        };
        let keys = (0..keys).map(|n| Key::parse(&format!("key-{n}")).expect("a key")).collect();
        let ttls: Vec<u64> = if paced {
            vec![10 * SECOND, 15 * SECOND]
        } else {
            let shortest = if calm { 3 } else { 2 };
            (0..2).map(|_| rng.between(shortest, 8) * SECOND).collect()
        };
        let (least, most) = (ttls.iter().min().copied(), ttls.iter().max().copied());
        let (least, most) = (least.unwrap_or(SECOND), most.unwrap_or(SECOND));
        let mut network = Network::draw(rng, most);
        let mut healed = network.clone();
        healed.healed(least / 10);
        if matches!(focus, DriverFocus::Calm | DriverFocus::Whole | DriverFocus::Primitives) {
            network.calm(least / 10);
            (network.request_loss, network.answer_loss) = (20, 20);
        } else if calm {
            network = healed.clone();
        }
        if focus == DriverFocus::Crowded {
            // A call takes about a twentieth of its timeout.
            (network.least, network.spread, network.quantum) = (least / 400, least / 800, 1);
        }
        let some =
            |rng: &mut Rng, most: u64| if calm || rng.chance(500) { 0 } else { rng.between(1, most) as u32 };
        let mut guarantees = Guarantees::default();
        guarantees.atomic_create = true;
        guarantees.atomic_replace = true;
        guarantees.linearizable_reads = true;
        guarantees.keeps_acknowledged = true;
        guarantees.unique_versions = true;
        guarantees.reach = Reach::Network;
        guarantees.clock = rng.pick(&[StoreClock::Nothing, StoreClock::Floors, StoreClock::Floors]);
        guarantees.clock_tick = Duration::from_micros(1);
        guarantees.watch = focus == DriverFocus::Hints || rng.chance(500);
        guarantees.write_interval = if paced { Duration::from_secs(1) } else { Duration::from_millis(10) };
        guarantees.value_max = 1 << 20;
        let hints_fail = focus == DriverFocus::Hints;
        Self {
            focus,
            machines,
            processes,
            users: match focus {
                DriverFocus::Paced => 12,
                DriverFocus::Crowded => 24,
                _ => rng.between(1, 3) as usize,
            },
            keys,
            group: Key::parse("group").expect("a key"),
            slots: rng.between(1, 3) as u16,
            entries: (0..2).map(|n| Key::parse(&format!("entry-{n}")).expect("a key")).collect(),
            ttls,
            network,
            healed,
            guarantees,
            lies: focus == DriverFocus::Liars,
            foreign: !calm && rng.chance(200),
            witnesses: focus == DriverFocus::Witnesses || rng.chance(700),
            loses_locks: !calm && rng.chance(if focus == DriverFocus::Witnesses { 300 } else { 50 }),
            keys_max: match focus {
                DriverFocus::Keys => 2,
                DriverFocus::Primitives => rng.pick(&[2, 10_000]),
                _ => 10_000,
            },
            fault_every: if calm { 0 } else { rng.between(3, 30) * SECOND },
            preemption: if calm { 0 } else { rng.pick(&[0, 2, 10]) },
            preemption_most: rng.pick(&[MILLI, 50 * MILLI, 2 * SECOND]),
            store_panics: if focus == DriverFocus::Panics { 30 } else { some(rng, 10) },
            user_panics: if focus == DriverFocus::Panics { 100 } else { some(rng, 30) },
            hint_loss: if hints_fail { 900 } else { some(rng, 500) },
            unwatchable: some(rng, 500),
            disk_failure: some(rng, 100),
            slow_disk: some(rng, 100),
            logbook: focus == DriverFocus::Pages || rng.chance(500),
            page_failure: some(rng, 100),
            page_damage: if focus == DriverFocus::Pages { 200 } else { some(rng, 100) },
            no_thread: some(rng, 50),
            drops: match focus {
                DriverFocus::Whole | DriverFocus::Crowded | DriverFocus::Credentials => 0,
                _ => rng.pick(&[50, 200, 400]),
            },
            shutdowns: match focus {
                DriverFocus::Shutdowns => 150,
                DriverFocus::Credentials => 0,
                DriverFocus::Primitives => rng.pick(&[0, 30, 100]),
                _ => rng.pick(&[0, 10, 30]),
            },
            witnesses_in_memory: rng.chance(300),
            calls_max: match focus {
                DriverFocus::Crowded => NonZero::<usize>::MIN,
                // Few places and messages that are lost: a renewal may wait for longer than it has time.
                DriverFocus::Whole | DriverFocus::Paced => CoordinatorBuilder::CALLS_MAX,
                _ => rng.pick(&[2, 4, 256]).try_into().expect("it is not zero"),
            },
            outage: None,
        }
    }

    /// One process on a store that is down for a while. Nothing else fails.
    pub(super) fn of_outage(rng: &mut Rng, ttl: u64, outage: OutagePlan) -> Self {
        let mut plan = Self::draw(rng, DriverFocus::Outage);
        plan.machines.truncate(1);
        plan.machines[0].rate = 1_000_000;
        plan.ttls = vec![ttl];
        (plan.network.least, plan.network.spread, plan.network.quantum) = (2 * MILLI, MILLI, 1);
        plan.guarantees.write_interval = Duration::ZERO;
        plan.guarantees.watch = false;
        plan.witnesses = false;
        plan.calls_max = CoordinatorBuilder::CALLS_MAX;
        plan.keys_max = usize::MAX;
        plan.outage = Some(outage);
        plan
    }

    /// The network, before or after the end of all faults.
    pub(super) fn network(&self, healed: bool) -> &Network {
        if healed { &self.healed } else { &self.network }
    }

    pub(super) fn ttl_most(&self) -> u64 {
        self.ttls.iter().max().copied().unwrap_or_default()
    }
}

impl MachinePlan {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            boot: rng.between(1, 1_000_000) * SECOND,
            // Two machines differ by less than the drift of a lease, one per cent.
            rate: rng.between(996_000, 1_004_000),
            wall_offset: rng.below(100_000),
        }
    }
}

/// Keys of a crowded coordinator: each has a user that renews its lease all the time.
pub(super) const CROWDED_KEYS: u64 = 4;
