use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_core::machine::{Fault, Input, Outcome, Purpose, Write};
use tenure_core::{Token, record};
use tenure_store::{BoxFuture, Key, Reason, Store};

use super::call_time::CallTime;
use super::calls::{self, CallAnswer};
use super::command::{LeaseId, Visit};
use super::deadlines::Deadlines;
use super::logbook_client::LogbookClient;
use super::place_queue::Ticket;
use super::places::{CallPlace, Places};
use super::recorder::Operation;
use crate::clock::{Clock, Instant};
use crate::host::simulation::{Duty, does};
use crate::store::caught::Caught;

/// Pending calls on the store, and those that wait for a place.
pub(crate) struct InFlight {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    places: Places,
    calls: FuturesUnordered<BoxFuture<'static, Option<EndedCall>>>,
    /// Tickets of leases whose call may still wait for a place. A call that waits for the write interval first has
    /// none.
    tickets: BTreeMap<LeaseId, Ticket>,
    deadlines: Deadlines,
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) lease: LeaseId,
    pub(crate) call: Call,
    pub(crate) answer: CallAnswer,
    /// False if it got no place in time, or was withdrawn: it says nothing about the store.
    pub(crate) was_sent: bool,
}

/// A pending call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Time before it was sent, or queued for sending.
    pub(crate) sent: Instant,
    pub(crate) operation: Operation,
    pub(crate) token: Option<Token>,
}

impl InFlight {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        deadlines: Deadlines,
        places: Places,
    ) -> Self {
        Self { store, clock, places, calls: FuturesUnordered::new(), tickets: BTreeMap::new(), deadlines }
    }

    /// Starts a read for a lease. With `logbook` it is the first read of the key.
    pub(crate) fn read(
        &mut self,
        lease: LeaseId,
        key: Key,
        time: CallTime,
        logbook: Option<Arc<LogbookClient>>,
    ) {
        let future = calls::read(Arc::clone(&self.store), key, logbook);
        let call = Call { sent: time.sent, operation: Operation::Read, token: None };
        self.start(lease, call, time, Box::pin(future))
    }

    /// Starts a write for a lease. `first` runs when the write has its place, just before it is sent.
    pub(crate) fn write(
        &mut self,
        lease: LeaseId,
        key: Key,
        time: CallTime,
        first: Option<BoxFuture<'static, ()>>,
        write: Write,
    ) {
        let token = Some(write.record.token).filter(|_| write.purpose != Purpose::Plant);
        let value = record::try_encode(&write.record);
        let store = Arc::clone(&self.store);
        let operation = Operation::Write(write.purpose);
        let future = async move {
            let value = match value {
                Ok(value) => value,
                // Nothing is sent, so nothing can land.
                Err(foreign) => return calls::unwritable(&foreign),
            };
            if let Some(first) = first {
                first.await;
            }
            calls::write(store, key, value, write).await
        };
        let call = Call { sent: time.sent, operation, token };
        self.start(lease, call, time, Box::pin(future))
    }

    /// Starts calls that belong to no lease, such as those of an observer. They take no place: some of them may last longer
    /// than a lease can wait, and a reader that pauses would keep their places.
    pub(crate) fn visit(&mut self, visit: Visit) {
        let store = Arc::clone(&self.store);
        let visited: BoxFuture<'static, ()> = Box::pin(async move { visit(store).await });
        self.calls.push(Box::pin(Caught::new(visited).map(|_| None)));
    }

    /// Ends the call of a lease that no longer needs it, if it still waits for a place.
    pub(crate) fn withdraw(&mut self, lease: LeaseId) {
        if let Some(ticket) = self.tickets.remove(&lease)
            && does(Duty::WithdrawCalls)
        {
            self.places.withdraw(ticket);
        }
    }

    /// The next completed call of a lease; `None` inside if it belonged to no lease, outside if no call is pending.
    pub(crate) async fn next(&mut self) -> Option<Option<EndedCall>> {
        let ended = self.calls.next().await;
        if let Some(Some(ended)) = &ended {
            self.tickets.remove(&ended.lease);
        }
        ended
    }

    fn start(&mut self, lease: LeaseId, call: Call, time: CallTime, future: BoxFuture<'static, CallAnswer>) {
        let (deadlines, future) = (self.deadlines.clone(), Caught::new(future));
        let answer = move |answered| match answered {
            Some(Ok(answer)) => answer,
            Some(Err(panicked)) => {
                unanswered(call.operation, format!("the code of the call {panicked}").into())
            }
            None => unanswered(call.operation, "no answer within the request timeout".into()),
        };
        let ends = move |given_at| if does(Duty::TimeCalls) { time.ends(given_at) } else { NEVER };
        if time.interval.is_zero()
            && let Some(place) = self.places.try_take(time.urgency)
        {
            let future = deadlines.until(ends(None), future);
            return self.calls.push(Box::pin(async move {
                let answer = answer(future.await);
                drop(place);
                Some(EndedCall { lease, call, answer, was_sent: true })
            }));
        }
        let waiting = if time.interval.is_zero() {
            let waiting = self.places.wait(time.urgency);
            self.tickets.insert(lease, waiting.ticket());
            waiting.given().boxed()
        } else {
            let (places, interval) = (self.places.clone(), self.clock.sleep_until(time.due()));
            interval.then(async move |()| places.take(time.urgency).await).boxed()
        };
        let waiting = self.deadlines.until(time.waits_until(), waiting);
        self.calls.push(Box::pin(async move {
            let place: Option<CallPlace> = waiting.await.flatten();
            let was_sent = place.is_some();
            let answer = match place {
                Some(place) => {
                    let answered = deadlines.until(ends(place.given_at), future).await;
                    drop(place);
                    answer(answered)
                }
                None => not_sent(call.operation),
            };
            Some(EndedCall { lease, call, answer, was_sent })
        }));
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

/// Answer to a call that got none: its outcome is unknown.
fn unanswered(operation: Operation, why: Arc<str>) -> CallAnswer {
    let fault =
        if does(Duty::TimeoutIsUnknown) { Fault::Unknown } else { Fault::Refused(Reason::Unreachable) };
    let input = match operation {
        Operation::Read => Input::Read(Err(fault)),
        Operation::Write(_) => Input::Written(Outcome::Fault(fault)),
    };
    CallAnswer::new(input, Some(why))
}

/// Answer to a call that got no place in time, or was withdrawn: it certainly has no effect.
fn not_sent(operation: Operation) -> CallAnswer {
    let fault = Fault::Refused(Reason::Unreachable);
    let input = match operation {
        Operation::Read => Input::Read(Err(fault)),
        Operation::Write(_) => Input::Written(Outcome::Fault(fault)),
    };
    let sentence = "the call was not sent: this coordinator had too many calls in flight, or the store was failing calls";
    CallAnswer::new(input, Some(sentence.into()))
}

/// No call lasts that long.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tenure_store::Expect;

    use super::super::urgency::Urgency;
    use super::*;
    use crate::clock::BootClock;
    use crate::store::Memory;
    use tenure_core::record::Nonce;

    #[test]
    fn a_record_that_could_not_be_read_back_is_refused_and_never_sent() {
        let memory = Memory::new();
        let (store, clock) = (Arc::new(memory.clone()), Arc::new(BootClock::new()));
        let mut in_flight = InFlight::new(store, clock, Deadlines::default(), Places::new(1));
        let vacant = include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tenure-core/tests/fixtures/records/v1/vacant.json"
        ));
        let mut record = record::decode(vacant).unwrap();
        record.nonce = Nonce::ZERO;
        let write = Write { purpose: Purpose::Plant, expect: Expect::Absent, record: Arc::new(record) };
        let (handle, _commands) =
            crate::keeper::KeeperHandle::new(crate::host::fork::ForkGuard::present().unwrap());
        let time = CallTime {
            sent: Instant::default(),
            interval: Duration::ZERO,
            timeout: Duration::ZERO,
            urgency: Urgency::Poll,
            wait_max: Duration::ZERO,
        };
        in_flight.write(handle.next_id(), Key::parse("k").unwrap(), time, None, write);
        let landed = in_flight.next().now_or_never().flatten().flatten().expect("it is not even sent");
        let Input::Written(Outcome::Fault(fault)) = landed.answer.input else { panic!("{landed:?}") };
        assert_eq!(fault, Fault::Refused(Reason::Invalid));
        let said = landed.answer.error.unwrap();
        assert!(said.contains("\"nonce\" is zero"), "{said}");
        assert_eq!(memory.calls().puts, 0);
    }
}
