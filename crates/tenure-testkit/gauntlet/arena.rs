//! Many contenders for the same leases, over networks that fail, until enough faults have happened.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, Error, ErrorKind, Lease};
use tenure_store::BoxFuture;

use super::book::Book;
use super::ground::Ground;
use super::machine::Machine;
use super::outcome::Outcome;
use super::tally::Tally;

/// Sizes of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Keys per group: there is one group for each family of faults.
    pub(crate) keys: usize,
    /// Machines per group. Each has a contender for each key of the group.
    pub(crate) machines: usize,
    pub(crate) ttl: Duration,
    /// True if the coordinators connect without checking the store.
    pub(crate) trusting: bool,
    /// Faults that must happen before the run ends.
    pub(crate) quota: Tally,
    /// Maximum duration of the faults.
    pub(crate) limit: Duration,
    pub(crate) seed: u64,
    /// One group for each of them.
    pub(crate) families: &'static [Family],
}

/// Main kind of faults for the machines of one group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Family {
    LostAnswers,
    LateWrites,
    Partitions,
    Storms,
    /// Only some lost answers: the server has faults.
    Calm,
}

impl Family {
    /// All faults of networks.
    pub(crate) const OF_NETWORKS: &[Self] =
        &[Self::LostAnswers, Self::LateWrites, Self::Partitions, Self::Storms];
}

/// Keys and slots, and the machines that contend for them.
#[derive(Debug)]
struct Group {
    family: Family,
    machines: Vec<Machine>,
    /// Those of the keys, and then those of the slots.
    books: Vec<Book>,
}

#[derive(Debug)]
pub(crate) struct Arena {
    size: Size,
    /// Slots per group, for which each machine has one contender.
    slots: u16,
    groups: Vec<Group>,
    /// True once no more faults are injected.
    healing: AtomicBool,
    mended: AtomicUsize,
    over: AtomicBool,
    /// Leases that ended before their holder released them.
    pub(crate) lost: AtomicU64,
    /// Acquires that ended without a lease.
    pub(crate) denied: AtomicU64,
    /// Acquires that were dropped.
    pub(crate) dropped: AtomicU64,
    /// Errors that should not have occurred.
    pub(crate) odd: Mutex<Vec<String>>,
}

/// Lets the contenders run until enough faults have happened, ends the faults, and verifies that every lease recovers.
pub(crate) async fn gauntlet(ground: &impl Ground, size: Size) -> Outcome {
    gauntlet_while(ground, size, || {}).await
}

/// The same, while the faults of `trouble` happen to the server.
pub(crate) async fn gauntlet_while(ground: &impl Ground, size: Size, trouble: impl FnOnce()) -> Outcome {
    let arena = Arc::new(Arena::new(ground, size).await);
    let mut tasks: Vec<BoxFuture<'static, ()>> = Vec::new();
    let mut seeds = fastrand::Rng::with_seed(size.seed);
    for group in 0..arena.groups.len() {
        for machine in 0..size.machines {
            let (nemesis, rng) = (Arc::clone(&arena), seeds.fork());
            tasks.push(Box::pin(async move { nemesis.trouble(group, machine, rng).await }));
            // The last one contends for the slots.
            for key in 0..size.keys + usize::from(arena.slots > 0) {
                let (arena, rng) = (Arc::clone(&arena), seeds.fork());
                tasks.push(Box::pin(async move { arena.contend(group, machine, key, rng).await }));
            }
        }
    }
    let began = BootClock.now();
    // The contenders have separate threads, so that this one may wait for the proxies.
    let contest = tenure_testkit::race(tasks);
    tokio::task::block_in_place(trouble);
    arena.enough().await;
    let took = BootClock.now().since(began);
    let held_again = arena.heal().await;
    arena.over.store(true, Relaxed);
    contest.await;
    Outcome::new(&arena, size, took, held_again)
}

impl Arena {
    async fn new(ground: &impl Ground, size: Size) -> Self {
        let mut groups = Vec::new();
        for &family in size.families {
            let machines =
                join_all((0..size.machines).map(|_| Machine::on(ground, size.ttl, size.trusting))).await;
            let books = size.keys + usize::from(ground.slots());
            let books = (0..books).map(|_| Book::default()).collect();
            groups.push(Group { family, machines, books });
        }
        Self {
            size,
            slots: ground.slots(),
            groups,
            healing: AtomicBool::new(false),
            mended: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            odd: Mutex::default(),
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.machines().map(Machine::tally).sum()
    }

    /// Each key and each slot by its name, with its book.
    pub(crate) fn books(&self) -> impl Iterator<Item = (String, &Book)> {
        self.groups.iter().flat_map(|group| {
            group.books.iter().enumerate().map(|(key, book)| (name(group.family, key), book))
        })
    }

    fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.groups.iter().flat_map(|group| &group.machines)
    }

    /// Waits until enough faults have happened and the fence has refused a stale write, or the time limit is reached.
    async fn enough(&self) {
        let limit = BootClock.now() + self.size.limit;
        let quota = &self.size.quota;
        let has_refused = || quota.is_empty() || self.books().any(|(_, book)| book.has_refused());
        while !(self.tally().covers(quota) && has_refused()) && BootClock.now() < limit {
            pause(Duration::from_millis(200)).await;
        }
    }

    /// Ends the faults. Returns for each key the time until it was held again, if it was.
    async fn heal(&self) -> Vec<Option<Duration>> {
        self.healing.store(true, Relaxed);
        while self.mended.load(Relaxed) < self.machines().count() {
            pause(Duration::from_millis(20)).await;
        }
        self.machines().for_each(Machine::settle);
        let healed = BootClock.now();
        let held_again = || {
            let books = self.books().map(|(_, book)| book.held_first_after(healed));
            books.map(|held| held.map(|held| held.since(healed))).collect::<Vec<_>>()
        };
        while held_again().contains(&None) && BootClock.now() < healed + self.size.ttl * 4 {
            pause(Duration::from_millis(20)).await;
        }
        held_again()
    }

    /// Injects the faults of one machine.
    async fn trouble(&self, group: usize, machine: usize, mut rng: fastrand::Rng) {
        let family = self.groups[group].family;
        let machine = &self.groups[group].machines[machine];
        match family {
            Family::LostAnswers => machine.lose_answers(0.3, rng.u64(..)),
            Family::LateWrites => machine.deliver_late(0.35, rng.u64(..)),
            Family::Partitions | Family::Storms | Family::Calm => {}
        }
        // With every other kind of fault, some answers are lost too.
        machine.lose_answers(0.03, rng.u64(..));
        while !self.healing.load(Relaxed) {
            let rule = match family {
                Family::LostAnswers | Family::LateWrites | Family::Calm => None,
                Family::Partitions => Some(machine.cut_off(&mut rng)),
                Family::Storms => Some(machine.storm(&mut rng)),
            };
            pause(self.size.ttl.mul_f64(0.1 + 0.9 * rng.f64() * rng.f64())).await;
            if let Some(rule) = rule {
                rule.remove();
            }
            pause(self.size.ttl.mul_f64(0.05 + 0.2 * rng.f64())).await;
        }
        machine.mend();
        self.mended.fetch_add(1, Relaxed);
    }

    /// One contender that acquires a lease or a slot, uses it and releases it, repeatedly.
    async fn contend(&self, group: usize, who: usize, key: usize, mut rng: fastrand::Rng) {
        let Group { family, machines, books } = &self.groups[group];
        let coordinator = &machines[who].coordinator;
        while !self.over.load(Relaxed) {
            // Some leases are not renewed: their holders are as good as dead when they pause.
            let manual = rng.u8(..8) == 0;
            let acquire = self.acquire(coordinator, *family, key, manual);
            // Some are dropped at an arbitrary point.
            let limit = self.size.ttl * if rng.u8(..16) == 0 { rng.u32(..100) } else { 1000 } / 100;
            let acquired = match select(Box::pin(acquire), pause(limit)).await {
                Either::Left((acquired, _)) => acquired,
                Either::Right(_) => {
                    self.dropped.fetch_add(1, Relaxed);
                    continue;
                }
            };
            match acquired {
                Ok((key, lease)) => {
                    let book = &books[key];
                    book.granted(who, &lease);
                    let renewing = matches!(family, Family::LostAnswers) && !manual;
                    let pauses = if manual { 0.1 } else { 0.02 };
                    self.work(book, who, lease, renewing, pauses, &mut rng).await;
                }
                Err(error) if matches!(error.kind(), ErrorKind::Held | ErrorKind::Unavailable) => {
                    self.denied.fetch_add(1, Relaxed);
                }
                Err(error) => {
                    self.odd.lock().unwrap().push(error.to_string());
                    pause(self.size.ttl / 2).await;
                }
            }
        }
    }

    /// Acquires a lease, or a slot if this is no key. Returns it with the number of its book.
    async fn acquire(
        &self,
        coordinator: &Coordinator,
        family: Family,
        key: usize,
        manual: bool,
    ) -> Result<(usize, Lease), Error> {
        let (name, Size { ttl, keys, .. }) = (name(family, key), self.size);
        // They represent several machines, which learn nothing from each other's kernels.
        if key < keys {
            let request = coordinator.lease(name.as_str()).unwrap().without_witness().ttl(ttl);
            let request = if manual { request.manual() } else { request };
            return Ok((key, request.wait(ttl * 2).acquire().await?));
        }
        let request = coordinator.slots(name.as_str(), self.slots.into()).unwrap().without_witness().ttl(ttl);
        let request = if manual { request.manual() } else { request };
        let slot = request.wait(ttl * 2).acquire().await?;
        Ok((keys + usize::from(slot.index()), slot.into_lease()))
    }

    /// The work under a lease: checks and writes, sometimes with a long pause between the two.
    async fn work(
        &self,
        book: &Book,
        who: usize,
        lease: Lease,
        renewing: bool,
        pauses: f64,
        rng: &mut fastrand::Rng,
    ) {
        for _ in 0..rng.u8(2..20) {
            if !book.look(who, &lease) {
                self.lost.fetch_add(1, Relaxed);
                return;
            }
            if rng.f64() < pauses {
                pause(self.size.ttl.mul_f64(2.0 * rng.f64())).await;
            }
            book.write(who, &lease);
            if renewing {
                // More writes, whose answers may be lost. The next check shows the result.
                let _ = lease.renew().await;
            }
            pause(Duration::from_millis(rng.u64(..40))).await;
        }
        match rng.u8(..8) {
            // The keeper releases it.
            0 => drop(lease),
            // The lease is neither renewed nor released, until it runs out.
            1 => {
                pause(self.size.ttl).await;
                book.look(who, &lease);
            }
            // A lease that cannot be vacated lapses.
            _ => drop(lease.release().await),
        }
    }
}

fn name(family: Family, key: usize) -> String {
    format!("{family:?}/{key}")
}

fn pause(span: Duration) -> BoxFuture<'static, ()> {
    BootClock.sleep_until(BootClock.now() + span)
}
