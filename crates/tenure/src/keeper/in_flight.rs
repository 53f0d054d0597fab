use std::fmt;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_core::machine::{Fault, Input, Outcome, Purpose, Write};
use tenure_core::{Token, record};
use tenure_store::{BoxFuture, Key, Reason, Store};

use super::calls::{self, CallAnswer};
use super::command::{LeaseId, Visit};
use super::deadlines::Deadlines;
use super::logbook_client::LogbookClient;
use super::recorder::Operation;
use crate::clock::Instant;
use crate::host::simulation::{Duty, does};
use crate::store::caught::Caught;

/// Pending calls on the store.
pub(crate) struct InFlight {
    store: Arc<dyn Store>,
    calls: FuturesUnordered<BoxFuture<'static, Option<EndedCall>>>,
    deadlines: Deadlines,
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) lease: LeaseId,
    pub(crate) call: Call,
    pub(crate) answer: CallAnswer,
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
    pub(crate) fn new(store: Arc<dyn Store>, deadlines: Deadlines) -> Self {
        Self { store, calls: FuturesUnordered::new(), deadlines }
    }

    /// Starts a read for a lease. With `logbook` it is the first read of the key.
    pub(crate) fn read(
        &mut self,
        lease: LeaseId,
        key: Key,
        span: (Instant, Instant),
        logbook: Option<Arc<LogbookClient>>,
    ) {
        let future = calls::read(Arc::clone(&self.store), key, logbook);
        self.start(lease, span, Operation::Read, None, Box::pin(future))
    }

    /// Starts a write for a lease, after `first` has completed.
    pub(crate) fn write(
        &mut self,
        lease: LeaseId,
        key: Key,
        span: (Instant, Instant),
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
        self.start(lease, span, operation, token, Box::pin(future))
    }

    /// Starts the calls of an observer.
    pub(crate) fn visit(&mut self, visit: Visit) {
        let store = Arc::clone(&self.store);
        let visited: BoxFuture<'static, ()> = Box::pin(async move { visit(store).await });
        self.calls.push(Box::pin(Caught::new(visited).map(|_| None)));
    }

    /// The next completed call of a lease; `None` inside if it belonged to no lease, outside if no call is pending.
    pub(crate) async fn next(&mut self) -> Option<Option<EndedCall>> {
        self.calls.next().await
    }

    fn start(
        &mut self,
        lease: LeaseId,
        (sent, ends): (Instant, Instant),
        operation: Operation,
        token: Option<Token>,
        future: BoxFuture<'static, CallAnswer>,
    ) {
        let call = Call { sent, operation, token };
        let ends = if does(Duty::TimeCalls) { ends } else { NEVER };
        let future = self.deadlines.until(ends, Caught::new(future));
        self.calls.push(Box::pin(async move {
            let answer = match future.await {
                Some(Ok(answer)) => answer,
                Some(Err(panicked)) => {
                    unanswered(operation, format!("the code of the call {panicked}").into())
                }
                None => unanswered(operation, "no answer within the request timeout".into()),
            };
            Some(EndedCall { lease, call, answer })
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

/// No call lasts that long.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tenure_store::Expect;

    use super::*;
    use crate::store::Memory;
    use tenure_core::record::Nonce;

    #[test]
    fn a_record_that_could_not_be_read_back_is_refused_and_never_sent() {
        let memory = Memory::new();
        let mut in_flight = InFlight::new(Arc::new(memory.clone()), Deadlines::default());
        let vacant = include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tenure-core/tests/fixtures/records/v1/vacant.json"
        ));
        let mut record = record::decode(vacant).unwrap();
        record.nonce = Nonce::ZERO;
        let write = Write { purpose: Purpose::Plant, expect: Expect::Absent, record: Arc::new(record) };
        let (handle, _commands) =
            crate::keeper::KeeperHandle::new(crate::host::fork::ForkGuard::present().unwrap());
        let now = Instant::default();
        in_flight.write(handle.next_id(), Key::parse("k").unwrap(), (now, now), None, write);
        let landed = in_flight.next().now_or_never().flatten().flatten().expect("it is not even sent");
        let Input::Written(Outcome::Fault(fault)) = landed.answer.input else { panic!("{landed:?}") };
        assert_eq!(fault, Fault::Refused(Reason::Invalid));
        let said = landed.answer.error.unwrap();
        assert!(said.contains("\"nonce\" is zero"), "{said}");
        assert_eq!(memory.calls().puts, 0);
    }
}
