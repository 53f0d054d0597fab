//! Configuration of a seed. Every seed draws its own sizes, rates and faults, and disables some of the faults.

mod focused;
mod member;
mod nemesis;
mod network;
mod outages;
mod restarts;
mod scripts;
mod store;
mod work;

pub(crate) use member::Member;
pub(crate) use nemesis::{Nemesis, Strike};
pub(crate) use network::Network;
pub(crate) use outages::Outages;
pub(crate) use restarts::Restarts;
pub(crate) use scripts::Scripts;
pub(crate) use store::{StoreKind, Versions};
pub(crate) use work::Work;

use tenure_store::StoreClock;

use crate::Focus;
use crate::rng::Rng;
use crate::time::{MINUTE, SECOND};

/// The configuration of one seed.
#[derive(Clone, Debug)]
pub(crate) struct Swarm {
    /// Time during which faults strike.
    pub(crate) length: u64,
    pub(crate) weather: Weather,
    /// Number of physical machines.
    pub(crate) hosts: usize,
    pub(crate) members: Vec<Member>,
    pub(crate) store: StoreKind,
    pub(crate) network: Network,
    pub(crate) nemesis: Nemesis,
    pub(crate) work: Work,
    pub(crate) scripts: Scripts,
    /// Restarts of the server behind the store; `None` if it never restarts.
    pub(crate) restarts: Option<Restarts>,
    /// Outages of the store; `None` if it has none.
    pub(crate) outages: Option<Outages>,
    pub(crate) observers: usize,
    /// True if the store lies about its conditional writes.
    pub(crate) liar: bool,
    /// Duration of fair contention after healing, in ttls.
    pub(crate) fairness: u64,
    /// True if the holder is killed for good at the instant of healing.
    pub(crate) orphaned: bool,
}

/// Kind of seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// Any fault, clocks within their bounds: everything but L4 is checked.
    Rough,
    /// Only faults that no holder may notice: L4 is checked, too.
    Calm,
    /// Calm, with stealers and work that cannot be stopped: no other holder believes while such work runs.
    Stubborn,
    /// Clocks beyond their bounds: exclusion is not promised, but S1 and S3 are.
    BrokenClocks,
    /// Many contenders for a short time.
    Crowd,
}

impl Swarm {
    /// Draws the configuration of a seed of `minutes` minutes.
    pub(crate) fn draw(rng: &mut Rng, minutes: u64, focus: Focus) -> Self {
        let weather = match (focus, rng.below(100)) {
            (Focus::None, 0..8) | (Focus::Calm, _) | (Focus::Outages, 0..50) => Weather::Calm,
            (Focus::None, 8..13) => Weather::BrokenClocks,
            (Focus::None, 13) => Weather::Crowd,
            (Focus::None, 14..18) | (Focus::Stubborn, 0..60) => Weather::Stubborn,
            _ => Weather::Rough,
        };
        let mut swarm = Self::draw_weather(rng, minutes, weather);
        if focus == Focus::None {
            let aside = &mut rng.aside();
            swarm.scripts = Scripts::draw(aside, &mut swarm.members);
            swarm.work.unstoppable = aside.pick(&[0, 0, 0, 100, 400]);
            for member in &mut swarm.members {
                member.heeds = aside.chance(400);
                member.old = aside.chance(200);
            }
            if weather == Weather::Rough && aside.chance(100) {
                let ttl = swarm.longest_ttl();
                swarm.outages = Some(Outages { apart: 4 * ttl, most: 2 * ttl });
            }
        }
        focused::apply(&mut swarm, rng, focus);
        swarm.settle();
        swarm
    }

    fn draw_weather(rng: &mut Rng, minutes: u64, weather: Weather) -> Self {
        let crowd = weather == Weather::Crowd;
        let hosts = rng.between(1, 3) as usize;
        let count = if crowd { 40 } else { rng.between(2, 6) };
        let members: Vec<Member> =
            (0..count).map(|number| Member::draw(rng, number as usize, hosts, weather)).collect();
        Self {
            length: minutes * MINUTE / if crowd { 15 } else { 1 },
            weather,
            hosts,
            store: StoreKind::draw(rng),
            network: Network::draw(rng, longest_ttl(&members)),
            nemesis: Nemesis::draw(rng, weather),
            work: Work::draw(rng),
            scripts: Scripts::default(),
            restarts: None,
            outages: None,
            observers: rng.between(0, 2) as usize,
            liar: rng.chance(15),
            fairness: if rng.chance(100) && !crowd { 100 } else { 6 },
            orphaned: rng.chance(300),
            members,
        }
    }

    /// Makes the parts consistent.
    fn settle(&mut self) {
        let longest = self.longest_ttl();
        self.network.spike_most = self.network.spike_most.min(3 * longest);
        if self.weather == Weather::Calm {
            self.network.calm(self.shortest_timeout());
            self.nemesis.calm();
            self.work.late_extension = 0;
            self.scripts = Scripts::default();
            for member in &mut self.members {
                member.strict = 0;
                member.manual = 0;
                member.steal = 0;
            }
        }
        if self.weather == Weather::Stubborn {
            self.network.calm(self.shortest_timeout());
            self.nemesis.calm();
            self.nemesis.set(Strike::Pause, 0);
            self.work.late_extension = 0;
            self.work.unstoppable = self.work.unstoppable.max(500);
            self.scripts = Scripts::default();
            for (number, member) in self.members.iter_mut().enumerate() {
                (member.strict, member.manual, member.script) = (0, 0, 0);
                member.steal = if number % 2 == 0 { 500 } else { 0 };
            }
        }
        if self.store.versions == Versions::PerKey {
            // A late write that lands on a repeated version puts an older token back, as a restore does. If that happens
            // within a tick after a grant, nothing is promised.
            self.store.tick = 0;
        }
        if self.store.clock == StoreClock::Ages {
            // The rate of the store's clock must be within the bound of every member, or its ages prove nothing.
            let bound = self.members.iter().map(|member| u64::from(member.drift)).min().unwrap_or(0);
            self.store.rate = self.store.rate.clamp(1_000_001 - bound, 999_999 + bound);
        }
    }

    /// The shortest ttl of all members.
    pub(crate) fn shortest_ttl(&self) -> u64 {
        self.members.iter().map(|member| member.ttl()).min().unwrap_or(SECOND)
    }

    /// The longest ttl of all members.
    pub(crate) fn longest_ttl(&self) -> u64 {
        longest_ttl(&self.members)
    }

    /// Least time since a copy was superseded for it to be restored. A younger copy is outside the promise: a cached
    /// answer is used for one ttl, a grant based on it is believed for another, and clocks are off by the drift.
    pub(crate) fn restore_age(&self) -> u64 {
        self.longest_ttl() * 22 / 10
    }

    /// The shortest call timeout of all members.
    fn shortest_timeout(&self) -> u64 {
        let timeouts = self.members.iter().map(|member| member.timing.timeout().as_nanos() as u64);
        timeouts.min().unwrap_or(SECOND)
    }

    /// True if S2 is promised in this seed.
    pub(crate) fn promises_exclusion(&self) -> bool {
        self.weather != Weather::BrokenClocks
    }
}

fn longest_ttl(members: &[Member]) -> u64 {
    members.iter().map(Member::ttl).max().unwrap_or(SECOND)
}
