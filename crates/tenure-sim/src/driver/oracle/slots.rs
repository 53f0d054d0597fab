//! S4: a group has no more holders than slots. L3: a freed slot is taken in time.

use std::collections::BTreeMap;
use std::rc::Rc;

use tenure_core::record::Record;
use tenure_core::slots::GroupSize;
use tenure_store::Key;

use super::{DriverOracle, GrantId, UserBelief};
use crate::Invariant;
use crate::driver::DriverFocus;
use crate::driver::world::{DriverWorld, try_world, world};
use crate::primitives::judges::GroupJudge;
use crate::time::{MILLI, SECOND};

/// A group of slots.
#[derive(Default)]
pub(super) struct SlotOracle {
    pub(super) judge: GroupJudge,
    /// Time since which fewer slots are held than the group has.
    free_since: Option<u64>,
    /// Contenders that wait: the size that each expects, and the time since which it waits.
    waiting: BTreeMap<u64, (u16, u64)>,
    waiters: u64,
}

/// A contender that waits for a slot.
pub(in crate::driver) struct SlotWaiter {
    group: Key,
    number: u64,
}

impl SlotWaiter {
    pub(in crate::driver) fn new(group: &Key, size: u16) -> Self {
        let world = world();
        let mut oracle = world.oracle.borrow_mut();
        let it = oracle.groups.entry(group.clone()).or_default();
        it.waiters += 1;
        it.waiting.insert(it.waiters, (size, world.now.get()));
        Self { group: group.clone(), number: it.waiters }
    }
}

impl Drop for SlotWaiter {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        if let Some(it) = world.oracle.borrow_mut().groups.get_mut(&self.group) {
            it.waiting.remove(&self.number);
        }
    }
}

impl DriverWorld {
    /// Checks, from time to time, that a contender that listens to hints takes a slot that is free.
    pub(in crate::driver) fn judge_free_slots(self: &Rc<Self>) {
        let hints = self.plan.guarantees.watch && self.plan.hint_loss == 0;
        if self.plan.focus != DriverFocus::Primitives || !hints {
            return;
        }
        let (now, late) = (self.now.get(), self.plan.ttl_most() * 3 / 4 + SECOND);
        let mut oracle = self.oracle.borrow_mut();
        for (group, it) in &mut oracle.groups {
            let Some(size) = it.judge.size() else { continue };
            let server = self.server.borrow();
            let is_held = |index: &u16| {
                let key = Key::group_slot(group, *index).ok();
                key.and_then(|key| server.record(&key)).is_some_and(|record| record.is_held())
            };
            if (0..size).filter(is_held).count() == usize::from(size) {
                it.free_since = None;
                continue;
            }
            let since = *it.free_since.get_or_insert(now);
            let is_late = |waiting: &&(u16, u64)| waiting.0 == size && now - since.max(waiting.1) > late;
            if let Some((_, began)) = it.waiting.values().find(is_late) {
                let millis = (now - since.max(*began)) / MILLI;
                let sentence =
                    format!("{group} has had a free slot for {millis} ms while a contender waited");
                return self.violate(Invariant::L3, sentence);
            }
        }
    }

    /// A user has got a slot, by a request that expected `size` slots and began at `began`.
    pub(in crate::driver) fn judge_slot(self: &Rc<Self>, grant: &GrantId, size: u16, began: u64) {
        if self.plan.lies {
            return;
        }
        let now = self.now.get();
        let mut oracle = self.oracle.borrow_mut();
        let DriverOracle { beliefs, grants, groups, .. } = &mut *oracle;
        let (Some(group), Some(index)) = (grant.0.group(), grant.0.slot_index()) else { return };
        let judge = &mut groups.entry(group.clone()).or_default().judge;
        for belief in beliefs.iter().filter(|belief| belief.grant.0.group().as_ref() == Some(&group)) {
            judge.extends(belief.number, self.end_of(belief));
        }
        let mine = beliefs.iter().rev().find(|belief| belief.grant == *grant);
        let Some((mine, granted)) = mine.zip(grants.get(grant).map(|grant| grant.granted_at)) else { return };
        let expected = judge.expected(size, began);
        let end = self.end_of(mine);
        let judgement = expected.and_then(|()| {
            // Its belief may have ended before the user got it.
            if end > now { judge.believes(now, mine.number, index, granted, end, false) } else { Ok(()) }
        });
        if let Err(sentence) = judgement {
            self.violate(Invariant::S4, format!("{group}: {sentence}"));
        }
    }

    /// True time at which a belief ends by the clock of its process; now if it has ended.
    fn end_of(&self, belief: &UserBelief) -> u64 {
        let now = self.now.get();
        let (alive, machine) = self.process(belief.process, |it| (it.alive, it.machine));
        let deadline = belief.probe.deadline().filter(|_| alive && !belief.ended);
        deadline.map_or(now, |deadline| self.machines[machine].clock.reaches(deadline))
    }

    /// A plain key was written: it may be the size of a group.
    pub(super) fn see_size(&self, key: &Key, record: &Record) {
        let Some(group) = key.group().filter(|group| Key::group_size(group).as_ref() == Ok(key)) else {
            return;
        };
        let size = GroupSize::from_stored(&record.value).filter(|_| record.is_held());
        if let Some(size) = size {
            let mut oracle = self.oracle.borrow_mut();
            let it = oracle.groups.entry(group).or_default();
            it.free_since = None;
            it.judge.resized(self.now.get(), Some(size.get()));
        }
    }
}
