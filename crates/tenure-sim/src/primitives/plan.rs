use tenure_core::machine::Standard;
use tenure_core::slots::SlotRules;
use tenure_store::StoreClock;

use super::Topic;
use super::listings::Listings;
use crate::Focus;
use crate::rng::Rng;
use crate::swarm::{Member, Nemesis, Network, StoreKind, Strike, Versions, Weather};
use crate::time::{MINUTE, SECOND};

/// The configuration of one seed: every seed draws its own sizes, rates and faults, and disables some of the faults.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Time during which faults strike.
    pub(super) length: u64,
    pub(super) members: Vec<Member>,
    pub(super) store: StoreKind,
    pub(super) network: Network,
    pub(super) nemesis: Nemesis,
    /// Its listings with stamps, if it has them.
    pub(super) listings: Option<Listings>,
    /// Number of elections.
    pub(super) elections: usize,
    /// Number of watchers of the leader, for each election.
    pub(super) watchers: usize,
    /// Number of names of the sets.
    pub(super) names: usize,
    /// Number of plain keys.
    pub(super) plain: usize,
    /// Number of jobs that run once per period.
    pub(super) jobs: usize,
    /// The first size of each group of slots.
    pub(super) groups: Vec<u16>,
    /// Mean time between two resizes of a group.
    pub(super) resize_every: u64,
    /// Longest rest of a user, in hundredths of its ttl.
    pub(super) rest_most: u64,
    /// Longest time until a holder releases, in hundredths of its ttl.
    pub(super) hold_most: u64,
    /// Duration of fair contention after healing, in units of the longest ttl.
    pub(super) fairness: u64,
}

impl Plan {
    /// Draws the configuration of a seed of `minutes` minutes.
    pub(super) fn draw(rng: &mut Rng, minutes: u64, focus: Focus) -> Self {
        let count = rng.between(2, 5) as usize;
        let hosts = count;
        let members: Vec<Member> =
            (0..count).map(|number| Member::draw(rng, number, hosts, Weather::Rough)).collect();
        let longest = longest_ttl(&members);
        let mut plan = Self {
            // Its many actors make a third of the time enough.
            length: minutes * MINUTE / 3,
            store: StoreKind::draw(rng),
            network: Network::draw(rng, longest),
            nemesis: Nemesis::draw(rng, Weather::Rough),
            listings: Listings::draw(rng.aside()),
            elections: 0,
            watchers: 0,
            names: 0,
            plain: 0,
            jobs: 0,
            groups: Vec::new(),
            resize_every: rng.pick(&[10, 60, 300]) * SECOND,
            rest_most: rng.pick(&[5, 100, 400]),
            hold_most: rng.pick(&[100, 300, 600, 3000]),
            fairness: 12,
            members,
        };
        if focus == Focus::Jobs {
            plan.store.gets_floors();
        }
        for topic in Topic::of(focus, rng) {
            plan.add(rng, topic);
        }
        plan.bias(focus);
        plan.settle();
        plan
    }

    fn add(&mut self, rng: &mut Rng, topic: Topic) {
        match topic {
            Topic::Elections => {
                self.elections = rng.between(1, 2) as usize;
                self.watchers = rng.between(0, 2) as usize;
            }
            Topic::Keys => self.plain = rng.between(1, 3) as usize,
            Topic::Slots => {
                let groups = rng.between(1, 2);
                self.groups = (0..groups).map(|_| rng.between(1, u64::from(LARGEST_GROUP)) as u16).collect();
            }
            // A store without a clock refuses them.
            Topic::Jobs => self.jobs = if self.store.has_floors() { 1 } else { 0 },
            Topic::Sets => self.names = rng.between(2, 4) as usize,
        }
    }

    /// Changes that a focus makes.
    fn bias(&mut self, focus: Focus) {
        match focus {
            Focus::ElectedTwins => {
                for member in &mut self.members {
                    member.name = "twin".into();
                }
                self.hold_most = 300;
            }
            Focus::ElectedInTurn => {
                self.length = self.length.min(2 * MINUTE);
                self.fairness = 100;
            }
            Focus::Slots => {
                self.resize_every = 10 * SECOND;
                self.length = self.length.min(20 * MINUTE);
                self.fairness = 60;
                self.hold_most = self.hold_most.min(600);
            }
            _ => {}
        }
    }

    /// Makes the parts consistent.
    fn settle(&mut self) {
        for strike in [Strike::Reboot, Strike::Freeze, Strike::Restore, Strike::Foreign, Strike::CopyWitness]
        {
            self.nemesis.set(strike, 0);
        }
        self.network.spike_most = self.network.spike_most.min(3 * self.longest_ttl());
        if self.store.versions == Versions::PerKey {
            // A version that repeats after a deletion confuses the store, and no client can prevent it. The world of one
            // key has such stores.
            self.store.versions = Versions::Counter;
        }
        if self.store.hints > 0 {
            // Contenders use hints instead.
            self.listings = None;
        }
        if self.store.clock == StoreClock::Ages {
            // The rate of the store's clock must be within the bound of every member, or its ages prove nothing.
            let bound = self.members.iter().map(|member| u64::from(member.drift)).min().unwrap_or(0);
            self.store.rate = self.store.rate.clamp(1_000_001 - bound, 999_999 + bound);
        }
    }

    /// Number of keys.
    pub(super) fn keys(&self) -> usize {
        self.job_keys().end
    }

    /// The key of the size of a group.
    pub(super) fn size_key(&self, group: usize) -> usize {
        self.plain_keys().end + group * KEYS_OF_GROUP
    }

    /// The key of a slot of a group.
    pub(super) fn slot_key(&self, group: usize, index: u16) -> usize {
        assert!(usize::from(index) + 1 < KEYS_OF_GROUP, "no contender goes so far beyond the size");
        self.size_key(group) + 1 + usize::from(index)
    }

    /// The group that a key belongs to.
    pub(super) fn group_of(&self, key: usize) -> Option<usize> {
        let group = key.checked_sub(self.plain_keys().end)? / KEYS_OF_GROUP;
        (group < self.groups.len()).then_some(group)
    }

    /// The group and the index of the slot of this key.
    pub(super) fn slot_of(&self, key: usize) -> Option<(usize, u16)> {
        let group = self.group_of(key)?;
        let index = key.checked_sub(self.size_key(group) + 1)?;
        Some((group, index as u16))
    }

    /// The index of the slot of this group that has this key.
    pub(super) fn slot_index(&self, group: usize, key: usize) -> Option<u16> {
        self.slot_of(key).filter(|(of, _)| *of == group).map(|(_, index)| index)
    }

    /// Longest time for which a freed slot of a group of this size may stay unseen by a contender that waits: one round
    /// of its reads, or its listings while other slots change hands; one ttl after a try that was denied, and its calls.
    pub(super) fn freed_slot_within(&self, size: u16) -> u64 {
        let (ttl, timeout) = (self.longest_ttl(), self.longest_timeout());
        let round = match &self.listings {
            Some(listings) if Standard.lists(size) => ttl * 13 / 10 + listings.late_most,
            _ => (u64::from(size) + 2) * ttl * 11 / 40,
        };
        self.on_the_slowest_clock(round + ttl * 11 / 10 + 4 * timeout)
    }

    /// The plain keys of the users.
    pub(super) fn plain_keys(&self) -> std::ops::Range<usize> {
        let first = self.name_keys().end;
        first..first + self.plain
    }

    /// The keys of the jobs.
    pub(super) fn job_keys(&self) -> std::ops::Range<usize> {
        let first = self.plain_keys().end + self.groups.len() * KEYS_OF_GROUP;
        first..first + self.jobs
    }

    /// The period of the jobs.
    pub(super) fn period(&self) -> u64 {
        4 * self.longest_ttl()
    }

    /// Longest time by which a job may be due too early: contenders advance the time of the store, which may show whole
    /// seconds, on their own clocks.
    pub(super) fn due_tolerance(&self) -> u64 {
        self.longest_ttl() / 2 + 2 * self.store.tick
    }

    /// The keys of the names of the sets.
    pub(super) fn name_keys(&self) -> std::ops::Range<usize> {
        self.elections..self.elections + self.names
    }

    /// The longest ttl of all members.
    pub(super) fn longest_ttl(&self) -> u64 {
        longest_ttl(&self.members)
    }

    /// The shortest ttl of all members.
    pub(super) fn shortest_ttl(&self) -> u64 {
        self.members.iter().map(Member::ttl).min().unwrap_or(SECOND)
    }

    /// The longest call timeout of all members.
    pub(super) fn longest_timeout(&self) -> u64 {
        self.members.iter().map(Member::timeout).max().unwrap_or(SECOND)
    }

    /// The shortest call timeout of all members.
    pub(super) fn shortest_timeout(&self) -> u64 {
        self.members.iter().map(Member::timeout).min().unwrap_or(SECOND)
    }

    /// A span that is counted on any clock, in true time: on the slowest clock.
    pub(super) fn on_the_slowest_clock(&self, span: u64) -> u64 {
        let drift = self.members.iter().map(|member| u64::from(member.drift)).max().unwrap_or(0);
        span / (1_000_000 - drift) * 1_000_000 + SECOND / 10
    }
}

/// The largest size that a group gets.
pub(super) const LARGEST_GROUP: u16 = 5;

/// Number of keys of a group: its size, and its slots.
const KEYS_OF_GROUP: usize = 8;

fn longest_ttl(members: &[Member]) -> u64 {
    members.iter().map(Member::ttl).max().unwrap_or(SECOND)
}
