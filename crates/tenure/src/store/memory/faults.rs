use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tenure_store::{Expect, Key, Put, Reason};

use super::Memory;

/// Makes calls of a [`Memory`] go wrong, in the ways in which real stores and the networks before them do. Clones,
/// and the handles of all clones of the store, act on the same plan.
///
/// ```
/// # use tenure::store::{Memory, memory::PutFault};
/// # use tenure_store::{Expect, Key, Store, StoreError};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let memory = Memory::new();
/// let key = Key::parse("billing/nightly").unwrap();
///
/// // The write happens, and nobody is told.
/// memory.faults().next_put(PutFault::LoseAnswer);
/// let answer = memory.put(&key, "mine".into(), Expect::Absent).await;
/// assert!(matches!(answer, Err(StoreError::Unknown(_))));
/// assert_eq!(memory.contents(&key).unwrap(), "mine");
/// # }
/// ```
#[derive(Clone)]
pub struct Faults {
    memory: Memory,
}

/// How a conditional write goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PutFault {
    /// The request is lost on its way: not applied, and the outcome is unknown.
    LoseRequest,
    /// The answer is lost on its way: applied if the condition holds, and the outcome is unknown.
    LoseAnswer,
    /// The request is held back until [`Faults::deliver_late`]; the caller is told at once that the outcome is
    /// unknown.
    Late,
    /// The request is processed, and then processed again by a balancer that retries; the caller gets the second
    /// answer, which is a conflict also where the first was a success.
    Twice,
    /// Refused for this reason; certainly not applied.
    Refuse(Reason),
    /// Not applied, and the caller is asked to come back later.
    Throttle(Option<Duration>),
    /// Applied if the condition holds, and the caller is asked to come back later all the same.
    ThrottleAfterApplying(Option<Duration>),
    /// The caller is asked to come back later, and the request is held back until [`Faults::deliver_late`].
    ThrottleLate(Option<Duration>),
    /// Applied if the condition holds; the true answer arrives this much later on the store's clock.
    SlowAnswer(Duration),
    /// Never answered, and not applied.
    Hang,
    /// Never answered, but applied if the condition holds.
    HangAfterApplying,
}

/// How a read goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GetFault {
    /// It fails, and nothing is known.
    Fail,
    /// Refused for this reason.
    Refuse(Reason),
    /// The caller is asked to come back later.
    Throttle(Option<Duration>),
    /// What is there now is answered this much later on the store's clock, when it may be true no more.
    SlowAnswer(Duration),
    /// Never answered.
    Hang,
}

impl Faults {
    pub(super) fn new(memory: Memory) -> Self {
        Self { memory }
    }

    /// The next write for which no fault is queued yet goes wrong like this. Queued faults come before
    /// [`every_put`](Self::every_put).
    pub fn next_put(&self, fault: PutFault) {
        self.memory.lock().plan.next_puts.push_back(fault);
    }

    /// From now on every write goes wrong like this, or none does.
    pub fn every_put(&self, fault: Option<PutFault>) {
        self.memory.lock().plan.every_put = fault;
    }

    /// The next read for which no fault is queued yet goes wrong like this. Queued faults come before
    /// [`every_get`](Self::every_get).
    pub fn next_get(&self, fault: GetFault) {
        self.memory.lock().plan.next_gets.push_back(fault);
    }

    /// From now on every read goes wrong like this, or none does.
    pub fn every_get(&self, fault: Option<GetFault>) {
        self.memory.lock().plan.every_get = fault;
    }

    /// No later call goes wrong. Requests that are already held back stay so: they are on their way.
    pub fn clear(&self) {
        let plan = &mut self.memory.lock().plan;
        *plan = FaultPlan { held_back: std::mem::take(&mut plan.held_back), ..FaultPlan::default() };
    }

    /// The requests that were held back arrive now, in the order in which they were sent, each under its own
    /// condition. Says how many of them were applied.
    pub fn deliver_late(&self) -> usize {
        let arriving = std::mem::take(&mut self.memory.lock().plan.held_back);
        let answers = arriving.into_iter().map(|late| self.memory.apply(&late.key, late.value, &late.expect));
        answers.filter(|answer| matches!(answer, Put::Applied(_))).count()
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Faults").field(&self.memory.lock().plan).finish()
    }
}

/// What is to go wrong, and what is on its way.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    next_puts: VecDeque<PutFault>,
    every_put: Option<PutFault>,
    next_gets: VecDeque<GetFault>,
    every_get: Option<GetFault>,
    pub(super) held_back: Vec<LatePut>,
}

/// A request that has not arrived yet.
#[derive(Debug)]
pub(super) struct LatePut {
    key: Key,
    value: Bytes,
    expect: Expect,
}

impl FaultPlan {
    pub(super) fn take_put(&mut self) -> Option<PutFault> {
        self.next_puts.pop_front().or(self.every_put)
    }

    pub(super) fn take_get(&mut self) -> Option<GetFault> {
        self.next_gets.pop_front().or(self.every_get)
    }

    pub(super) fn hold_back(&mut self, key: &Key, value: Bytes, expect: Expect) {
        self.held_back.push(LatePut { key: key.clone(), value, expect });
    }
}
