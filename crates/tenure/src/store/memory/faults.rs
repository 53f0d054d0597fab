use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tenure_store::{Expect, Key, Put, Reason};

use super::Memory;

/// Injects faults into the calls of a [`Memory`], as they occur in real stores and networks. Clones, and the handles of
/// all clones of the store, share one plan.
///
/// ```
/// # use tenure::store::{Memory, memory::PutFault};
/// # use tenure_store::{Expect, Key, Store, StoreError};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let memory = Memory::new();
/// let key = Key::parse("billing/nightly").unwrap();
///
/// // The write happens, and the caller does not learn of it.
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

/// Fault of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PutFault {
    /// The request is lost: not applied, and the outcome is unknown.
    LoseRequest,
    /// The answer is lost: applied if the condition holds, and the outcome is unknown.
    LoseAnswer,
    /// The request is held back until [`Faults::deliver_late`]; the caller learns at once that the outcome is unknown.
    Late,
    /// The request is processed twice, as by a balancer that retries. The caller gets the second answer, which is a
    /// conflict even if the first was a success.
    Twice,
    /// Refused for this reason; certainly not applied.
    Refuse(Reason),
    /// Not applied, and the caller is throttled.
    Throttle(Option<Duration>),
    /// Applied if the condition holds, but the caller is throttled.
    ThrottleAfterApplying(Option<Duration>),
    /// The caller is throttled, and the request is held back until [`Faults::deliver_late`].
    ThrottleLate(Option<Duration>),
    /// Applied if the condition holds; the true answer arrives this much later on the store's clock.
    SlowAnswer(Duration),
    /// Never answered, and not applied.
    Hang,
    /// Never answered, but applied if the condition holds.
    HangAfterApplying,
}

/// Fault of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GetFault {
    /// The read fails with an unknown outcome.
    Fail,
    /// Refused for this reason.
    Refuse(Reason),
    /// The caller is throttled.
    Throttle(Option<Duration>),
    /// The current content, answered this much later on the store's clock, when it may be outdated.
    SlowAnswer(Duration),
    /// Never answered.
    Hang,
}

impl Faults {
    pub(super) fn new(memory: Memory) -> Self {
        Self { memory }
    }

    /// Queues a fault for the next write that has none yet. Queued faults come before [`every_put`](Self::every_put).
    pub fn next_put(&self, fault: PutFault) {
        self.memory.lock().plan.next_puts.push_back(fault);
    }

    /// Sets the fault of every write from now on, or removes it.
    pub fn every_put(&self, fault: Option<PutFault>) {
        self.memory.lock().plan.every_put = fault;
    }

    /// Queues a fault for the next read that has none yet. Queued faults come before [`every_get`](Self::every_get).
    pub fn next_get(&self, fault: GetFault) {
        self.memory.lock().plan.next_gets.push_back(fault);
    }

    /// Sets the fault of every read from now on, or removes it.
    pub fn every_get(&self, fault: Option<GetFault>) {
        self.memory.lock().plan.every_get = fault;
    }

    /// Removes all faults. Requests that are already held back stay so.
    pub fn clear(&self) {
        let plan = &mut self.memory.lock().plan;
        *plan = FaultPlan { held_back: std::mem::take(&mut plan.held_back), ..FaultPlan::default() };
    }

    /// Delivers the requests that were held back, in the order in which they were sent, each under its own condition.
    /// Returns the number of applied requests.
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

/// The planned faults, and the requests that are held back.
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
