//! Changes that a focus makes to a drawn configuration.

use tenure_store::StoreClock;

use super::store::YEAR_2026;
use super::{Outages, Restarts, Scripts, Strike, Swarm, Versions, Weather};
use crate::Focus;
use crate::rng::Rng;
use crate::time::{MILLI, MINUTE, SECOND};

pub(super) fn apply(swarm: &mut Swarm, rng: &mut Rng, focus: Focus) {
    if focus != Focus::None {
        swarm.liar = false;
    }
    match focus {
        Focus::None | Focus::Calm => {}
        // Those of the world of the primitives, which has its own configuration.
        Focus::Primitives
        | Focus::ElectedTwins
        | Focus::ElectedInTurn
        | Focus::Sets
        | Focus::Keys
        | Focus::Slots
        | Focus::Jobs => {}
        Focus::Clocks => clocks(swarm),
        Focus::SlowReads => slow_reads(swarm, rng),
        Focus::Witnesses => witnesses(swarm, rng),
        Focus::Deletions => deletions(swarm),
        Focus::Ticks => ticks(swarm, rng),
        Focus::Restores => restores(swarm, rng),
        Focus::Recounting => recounting(swarm),
        Focus::Clockless => clockless(swarm),
        Focus::GoingBack => going_back(swarm),
        Focus::Stealers => stealers(swarm),
        Focus::Unknowns => unknowns(swarm),
        Focus::SlowWork => slow_work(swarm),
        Focus::Stubborn => stubborn(swarm),
        Focus::Foreign => swarm.nemesis.set(Strike::Foreign, 40),
        Focus::Twins => twins(swarm),
        Focus::Scripts => scripts(swarm),
        Focus::Restarts => restarts(swarm, rng),
        Focus::Outages => outages(swarm, rng),
        Focus::Liars => swarm.liar = true,
        Focus::Fairness => {
            swarm.length = swarm.length.min(2 * MINUTE);
            swarm.fairness = 150;
        }
    }
}

fn clocks(swarm: &mut Swarm) {
    for (number, member) in swarm.members.iter_mut().enumerate() {
        member.set_drift(50_000);
        member.rate = if number % 2 == 0 { 950_001 } else { 1_049_999 };
        member.witness = false;
    }
    swarm.work.hold_most = 100_000;
    strike_only(swarm, &[(Strike::Partition, 10), (Strike::Pause, 10)]);
    swarm.nemesis.every = 4 * SECOND;
}

fn slow_reads(swarm: &mut Swarm, rng: &mut Rng) {
    for member in &mut swarm.members {
        member.set_drift(1_000);
        member.set_times(4_000, 700);
        member.rate = 1_000_000 - 999 + rng.between(0, 1_998);
        member.witness = false;
        member.handles = 1;
        member.steal = 0;
    }
    swarm.network.spread = 330 * MILLI;
    swarm.network.quantum = 1;
    swarm.work.hold_most = 100_000;
    strike_only(swarm, &[(Strike::Partition, 10)]);
    swarm.nemesis.every = 3 * SECOND;
}

fn witnesses(swarm: &mut Swarm, rng: &mut Rng) {
    swarm.hosts = rng.between(1, 2) as usize;
    for member in &mut swarm.members {
        member.host = rng.index(swarm.hosts);
        member.witness = true;
        member.heeds = rng.chance(500);
        member.resume = 800;
    }
    swarm.work.hold_most = 3_000;
    strike_only(
        swarm,
        &[(Strike::Crash, 10), (Strike::CopyWitness, 20), (Strike::Pause, 5), (Strike::Partition, 5)],
    );
    swarm.nemesis.orphans = 200;
    swarm.nemesis.every = 4 * SECOND;
}

fn deletions(swarm: &mut Swarm) {
    swarm.store.clock = StoreClock::Floors;
    for member in &mut swarm.members {
        member.set_times(4_000, 700);
    }
    swarm.network.spread = 500 * MILLI;
    swarm.work.hold_most = 50;
    swarm.work.rest_most = 20;
    strike_only(swarm, &[(Strike::Delete, 10), (Strike::Crash, 1)]);
    swarm.nemesis.every = 2 * SECOND;
}

fn ticks(swarm: &mut Swarm, rng: &mut Rng) {
    swarm.store.clock = StoreClock::Floors;
    swarm.store.versions = rng.pick(&[Versions::Counter, Versions::ContentHash]);
    swarm.store.tick = SECOND;
    for member in &mut swarm.members {
        member.set_times(2_000, 200);
        member.remembers = 0;
    }
    swarm.network.spread = 2 * MILLI;
    swarm.work.hold_most = 20;
    swarm.work.rest_most = 20;
    strike_only(swarm, &[(Strike::Delete, 10), (Strike::Crash, 10)]);
    swarm.nemesis.every = SECOND / 4;
}

fn restores(swarm: &mut Swarm, rng: &mut Rng) {
    swarm.store.clock = StoreClock::Floors;
    swarm.store.versions = rng.pick(&[Versions::ContentHash, Versions::PerKey]);
    for member in &mut swarm.members {
        member.set_times(2_000, 200);
        member.handles = 1;
    }
    swarm.network.spread = MILLI;
    swarm.work.hold_most = 100;
    swarm.work.rest_most = 2_000;
    strike_only(swarm, &[(Strike::Restore, 10), (Strike::Pause, 10)]);
    swarm.nemesis.pause_most = 1000;
    swarm.nemesis.every = 3 * SECOND;
}

fn recounting(swarm: &mut Swarm) {
    swarm.store.versions = Versions::PerKey;
    for member in &mut swarm.members {
        member.witness = false;
    }
    swarm.work.hold_most = 100;
    strike_only(swarm, &[(Strike::Delete, 10), (Strike::Crash, 10), (Strike::Pause, 10)]);
    swarm.nemesis.every = 2 * SECOND;
}

fn clockless(swarm: &mut Swarm) {
    swarm.store.clock = StoreClock::Nothing;
    swarm.work.hold_most = 100;
    for member in &mut swarm.members {
        member.remembers = 0;
    }
    strike_only(swarm, &[(Strike::Crash, 10), (Strike::Pause, 5)]);
    swarm.nemesis.every = 10 * SECOND;
}

fn going_back(swarm: &mut Swarm) {
    swarm.store.clock = StoreClock::Nothing;
    swarm.work.hold_most = 100;
    strike_only(swarm, &[(Strike::Delete, 5), (Strike::Restore, 10), (Strike::Crash, 5)]);
    swarm.nemesis.every = 20 * SECOND;
}

fn stealers(swarm: &mut Swarm) {
    for member in &mut swarm.members {
        member.set_times(5_000, 500);
        member.steal = 1000;
        member.witness = false;
        member.impatient = 0;
    }
    swarm.length = swarm.length.min(10 * MINUTE);
    swarm.work.hold_most = 3_000;
    swarm.work.rest_most = 3_000;
    swarm.orphaned = true;
}

fn unknowns(swarm: &mut Swarm) {
    swarm.network.answer_loss = 100;
    swarm.network.balance = 100;
    swarm.network.reset = 60;
    swarm.network.spike = 100;
    swarm.network.spike_most = 5 * SECOND;
    swarm.work.hold_most = 3_000;
    strike_only(swarm, &[(Strike::Storm, 10), (Strike::Pause, 5)]);
}

fn slow_work(swarm: &mut Swarm) {
    swarm.work.slow_stop = 800;
    swarm.work.stop_most = 300;
    swarm.work.late_extension = 200;
    swarm.work.hold_most = 600;
}

fn stubborn(swarm: &mut Swarm) {
    for (number, member) in swarm.members.iter_mut().enumerate() {
        member.set_times(5_000, 500);
        (member.old, member.steal, member.impatient) = (number % 2 == 1, 500, 0);
        member.witness = false;
    }
    swarm.work.unstoppable = 700;
    swarm.work.hold_most = 3_000;
    swarm.work.rest_most = 100;
    strike_only(swarm, &[(Strike::Crash, 10), (Strike::Partition, 5)]);
    swarm.nemesis.every = 10 * SECOND;
}

fn twins(swarm: &mut Swarm) {
    for member in &mut swarm.members {
        member.name = "twin".into();
        member.handles = 2;
    }
    swarm.work.hold_most = 600;
    swarm.network.request_loss = 100;
    swarm.network.answer_loss = 100;
}

fn scripts(swarm: &mut Swarm) {
    for member in &mut swarm.members {
        member.script = 800;
        member.witness = false;
        member.impatient = 0;
    }
    swarm.scripts =
        Scripts { killed: 100, cancelled: 300, hasty: 200, copied: 300, forgotten: 100, late: 200 };
    swarm.network.answer_loss = 100;
    swarm.network.reset = 60;
    swarm.work.hold_most = 600;
    swarm.work.rest_most = 100;
    strike_only(swarm, &[(Strike::Partition, 10), (Strike::Pause, 30), (Strike::Crash, 5)]);
    swarm.nemesis.every = 5 * SECOND;
}

fn restarts(swarm: &mut Swarm, rng: &mut Rng) {
    (swarm.store.clock, swarm.store.versions) = (StoreClock::Floors, Versions::Counter);
    (swarm.store.epoch, swarm.store.tick) = (YEAR_2026, 0);
    let wide = rng.chance(700);
    for (number, member) in swarm.members.iter_mut().enumerate() {
        member.set_times(if rng.chance(700) { 4_000 } else { 2_000 }, 190);
        if wide {
            member.set_drift(200_000);
            member.rate = if number % 2 == 0 { 800_001 } else { 1_199_999 };
        }
        member.impatient = 0;
        member.witness = rng.chance(800);
        member.resume = 800;
    }
    swarm.store.hints = rng.pick(&[0, 900]);
    swarm.network.spread = 20 * MILLI;
    swarm.network.quantum = 1;
    swarm.work.hold_most = rng.pick(&[50, 300]);
    swarm.work.rest_most = 150;
    strike_only(
        swarm,
        &[
            (Strike::Pause, 10),
            (Strike::Crash, 10),
            (Strike::Reboot, 3),
            (Strike::Partition, 5),
            (Strike::StepStoreClock, 20),
        ],
    );
    swarm.nemesis.every = 6 * SECOND;
    swarm.restarts = Some(Restarts {
        every: rng.pick(&[8, 20]) * SECOND,
        down_most: rng.pick(&[SECOND / 2, 4 * SECOND]),
        bystander: if wide { 1_199_999 } else { 1_000_000 },
    });
}

/// In calm weather an outage is the only trouble, and as long as the durations of the members promise to survive.
fn outages(swarm: &mut Swarm, rng: &mut Rng) {
    let ttl = rng.between(2_000, 20_000);
    let timeout = rng.pick(&[ttl / 10, ttl / 30]);
    for member in &mut swarm.members {
        member.set_times(ttl, timeout);
    }
    let ridden_out = swarm.members.iter().map(|member| member.timing.rides_out()).min();
    let ridden_out = ridden_out.map_or(0, |span| span.as_nanos() as u64);
    let ttl = swarm.longest_ttl();
    // An outage is measured in true time, and a fast clock counts up to five percent more.
    let most = if swarm.weather == Weather::Calm { ridden_out / 100 * 95 } else { 2 * ttl };
    swarm.outages = Some(Outages { apart: 2 * ttl, most });
    (swarm.network.request_loss, swarm.network.answer_loss) = (0, 0);
    swarm.work.hold_most = 3_000;
    strike_only(swarm, &[(Strike::Crash, 10), (Strike::WallJump, 10)]);
    swarm.nemesis.every = MINUTE;
}

/// Sets the weights of these strikes, and disables all others.
fn strike_only(swarm: &mut Swarm, with: &[(Strike, u32)]) {
    for strike in Strike::ALL.iter().copied() {
        let weight = with.iter().find(|(it, _)| *it == strike).map_or(0, |(_, weight)| *weight);
        swarm.nemesis.set(strike, weight);
    }
}
