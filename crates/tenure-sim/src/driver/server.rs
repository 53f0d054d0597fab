use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tenure_core::machine::Fault as CallFault;
use tenure_core::record::{self, Record};
use tenure_store::{
    Applied, Conflict, Entry, Expect, Guarantees, Key, Prefix, Put, Reading, Reason, StoreClock, StoreError,
    StoreTime, Version, Write,
};
use tokio::sync::{mpsc, oneshot};

use super::Reached;
use super::panics;
use super::plan::DriverPlan;
use super::world::DriverWorld;
use crate::Fault;
use crate::parts::{Departure, Passage};
use crate::time::{MILLI, SECOND};

/// The store of all processes: linearizable, each request that arrives is atomic.
pub(super) struct StoreServer {
    entries: BTreeMap<Key, StoredEntry>,
    /// Number of versions made.
    made: u64,
    pub(super) guarantees: Guarantees,
    lies: bool,
    watchers: Vec<HintSubscriber>,
    /// Senders of answers that never come: their calls hang.
    pub(super) unanswered: Vec<Answered>,
    /// True while it answers no request.
    pub(super) down: bool,
    /// True while it is overloaded, and throttles many requests.
    pub(super) storm: bool,
}

struct StoredEntry {
    value: Bytes,
    /// `None` if the value is no record.
    record: Option<Arc<Record>>,
    version: Version,
    written: u64,
}

struct HintSubscriber {
    prefix: Prefix,
    hints: mpsc::UnboundedSender<()>,
}

/// A request to the store.
#[derive(Clone, Debug)]
pub(super) enum StoreRequest {
    Get(Key),
    Write(Key, Write),
    List(Prefix),
}

/// An answer of the store.
#[derive(Clone, Debug)]
pub(super) enum StoreAnswer {
    Read(Reading),
    Written(Put),
    Listed(Vec<Key>),
}

pub(super) type Answered = oneshot::Sender<Result<StoreAnswer, StoreError>>;

/// A write that the store has just applied.
pub(super) struct AppliedWrite<'a> {
    pub(super) process: usize,
    pub(super) key: &'a Key,
    pub(super) write: &'a Write,
    /// The entry before it; `Err` if it was no record.
    pub(super) before: Option<Result<Arc<Record>, ()>>,
    /// The record that it left, if it is one.
    pub(super) record: Option<Arc<Record>>,
    /// Time of the process when it was sent.
    pub(super) sent: u64,
}

impl StoreServer {
    pub(super) fn new(plan: &DriverPlan) -> Self {
        Self {
            entries: BTreeMap::new(),
            made: 0,
            guarantees: plan.guarantees,
            lies: plan.lies,
            watchers: Vec::new(),
            unanswered: Vec::new(),
            down: false,
            storm: false,
        }
    }

    /// All keys with their records.
    pub(super) fn records(&self) -> impl Iterator<Item = (&Key, &Arc<Record>)> {
        self.entries.iter().filter_map(|(key, entry)| Some((key, entry.record.as_ref()?)))
    }

    /// The record of a key.
    pub(super) fn record(&self, key: &Key) -> Option<Arc<Record>> {
        self.entries.get(key).and_then(|stored| stored.record.clone())
    }

    /// Puts foreign bytes under a key.
    pub(super) fn deface(&mut self, key: Key) {
        self.made += 1;
        let version = Version::new(format!("foreign-{}", self.made));
        self.entries
            .insert(key, StoredEntry { value: "foreign bytes".into(), record: None, version, written: 0 });
    }

    pub(super) fn watch(&mut self, prefix: Prefix) -> mpsc::UnboundedReceiver<()> {
        let (hints, receiver) = mpsc::unbounded_channel();
        self.watchers.push(HintSubscriber { prefix, hints });
        receiver
    }

    fn time(&self, now: u64) -> Option<StoreTime> {
        let time = StoreTime::from_micros(EPOCH + now / 1000);
        (self.guarantees.clock >= StoreClock::Floors).then_some(time)
    }

    fn read(&self, now: u64, key: &Key) -> Reading {
        let entry = self.entries.get(key).map(|stored| {
            let age = (self.guarantees.clock == StoreClock::Ages)
                .then(|| Duration::from_nanos(now - stored.written));
            Entry::new(stored.value.clone(), stored.version.clone()).with_age(age)
        });
        Reading::new(entry).with_time(self.time(now))
    }

    fn write(&mut self, now: u64, key: &Key, write: &Write, record: Option<Arc<Record>>) -> Put {
        let holds = match (&write.expect, self.entries.get(key)) {
            (Expect::Absent, None) => true,
            (Expect::Version(expected), Some(stored)) => *expected == stored.version,
            _ => false,
        };
        if !holds && !self.lies {
            return Put::Conflict(Conflict);
        }
        self.made += 1;
        let version = Version::new(self.made.to_string());
        let stored =
            StoredEntry { value: write.value.clone(), record, version: version.clone(), written: now };
        self.entries.insert(key.clone(), stored);
        Put::Applied(Applied::new(version).with_time(self.time(now)))
    }
}

impl DriverWorld {
    /// Sends a request on its way.
    pub(super) fn send(self: &Rc<Self>, process: usize, request: StoreRequest, answered: Answered) {
        let panics = !self.healed.get() && self.chance(self.plan.store_panics);
        if panics && self.chance(500) {
            self.reach(Reached::StorePanicked);
            panics::simulated("the store's code before a request");
        }
        let writing = matches!(request, StoreRequest::Write(..));
        let sent = self.machines[self.process(process, |it| it.machine)].clock.local(self.now.get());
        if let StoreRequest::Write(key, write) = &request
            && let Ok(record) = record::decode(&write.value)
        {
            self.judge_send(process, key, &Arc::new(record), write.purpose);
        }
        if self.now.get() < self.process(process, |it| it.denied_until) {
            self.reach(Reached::Denied);
            let denied = Err(StoreError::refused(Reason::Denied, "these credentials are not valid"));
            return self.after(MILLI, move |_| drop(answered.send(denied)));
        }
        let (request, answered) = match self.meet_outage(process, request, answered, sent) {
            Some(unaffected) => unaffected,
            None => return,
        };
        let call = self.departure(writing);
        let passage = {
            let (mut rng, mut tally) = (self.rng.borrow_mut(), self.tally.borrow_mut());
            let mut processes = self.processes.borrow_mut();
            self.plan.network(self.healed.get()).send(
                &mut rng,
                &mut tally,
                &mut processes[process].link,
                call,
            )
        };
        match passage {
            Passage::Fails(fault) => drop(answered.send(Err(store_error(fault)))),
            Passage::Lost => self.server.borrow_mut().unanswered.push(answered),
            Passage::Flies(flight) => {
                let answered = Rc::new(std::cell::Cell::new(Some(answered)));
                for copy in 0..flight.copies {
                    let (request, answered) = (request.clone(), Rc::clone(&answered));
                    let span = flight.arrivals[copy as usize] - self.now.get();
                    self.after(span, move |world| {
                        let answer = world.arrive(process, &request, sent);
                        if copy == flight.answering
                            && let Some(answered) = answered.take()
                        {
                            world.answer(process, writing, flight.throttled, answer, answered);
                        }
                    });
                }
                if let Some(at) = flight.unanswered {
                    self.after(at - self.now.get(), move |_| {
                        if let Some(answered) = answered.take() {
                            let _ = answered.send(Err(StoreError::unknown("the connection was reset")));
                        }
                    });
                }
            }
        }
        if panics {
            self.reach(Reached::StorePanicked);
            panics::simulated("the store's code after a request");
        }
    }

    fn departure(&self, writing: bool) -> Departure {
        let now = self.now.get();
        let storm = self.server.borrow().storm;
        Departure { now, writing, storm, gives_up: now + 10_000 * SECOND, ttl: self.plan.ttl_most() }
    }

    /// A request arrives at the store.
    pub(super) fn arrive(
        self: &Rc<Self>,
        process: usize,
        request: &StoreRequest,
        sent: u64,
    ) -> Option<StoreAnswer> {
        let now = self.now.get();
        if self.server.borrow().down {
            self.reach(Reached::StoreDown);
            return None;
        }
        self.reach(Reached::Call);
        match request {
            StoreRequest::Get(key) => Some(StoreAnswer::Read(self.server.borrow().read(now, key))),
            StoreRequest::List(prefix) => {
                let server = self.server.borrow();
                let keys = server.entries.keys().filter(|key| prefix.covers(key)).cloned().collect();
                Some(StoreAnswer::Listed(keys))
            }
            StoreRequest::Write(key, write) => {
                let record = record::decode(&write.value).ok().map(Arc::new);
                let (put, before) = {
                    let mut server = self.server.borrow_mut();
                    let before = server.entries.get(key).map(|stored| stored.record.clone().ok_or(()));
                    (server.write(now, key, write, record.clone()), before)
                };
                if let Put::Applied(_) = put {
                    self.judge_write(&AppliedWrite { process, key, write, before, record, sent });
                    self.hint(key);
                } else if let Some(record) = record {
                    self.see_conflict(key, record.nonce);
                }
                Some(StoreAnswer::Written(put))
            }
        }
    }

    /// Sends the answer back.
    fn answer(
        self: &Rc<Self>,
        process: usize,
        writing: bool,
        throttled: bool,
        answer: Option<StoreAnswer>,
        answered: Answered,
    ) {
        let call = self.departure(writing);
        let at = {
            let (mut rng, mut tally) = (self.rng.borrow_mut(), self.tally.borrow_mut());
            let mut processes = self.processes.borrow_mut();
            self.plan.network(self.healed.get()).answer(
                &mut rng,
                &mut tally,
                &mut processes[process].link,
                call,
            )
        };
        match (at, answer) {
            (Some(at), Some(answer)) => {
                if throttled && matches!(answer, StoreAnswer::Written(Put::Applied(_))) {
                    self.tally.borrow_mut().fault(Fault::ThrottledAfter);
                }
                let answer = if throttled { Err(StoreError::throttled(None)) } else { Ok(answer) };
                self.after(at - self.now.get(), move |_| drop(answered.send(answer)));
            }
            // The call hangs, as on a connection that is cut without notice.
            _ => self.server.borrow_mut().unanswered.push(answered),
        }
    }

    /// Sends hints to the watchers of the key. Some are lost, some are late.
    fn hint(self: &Rc<Self>, key: &Key) {
        let mut server = self.server.borrow_mut();
        server.watchers.retain(|watcher| !watcher.hints.is_closed());
        for watcher in server.watchers.iter().filter(|watcher| watcher.prefix.covers(key)) {
            if self.chance(self.plan.hint_loss) {
                self.reach(Reached::HintLost);
                continue;
            }
            let (hints, late) = (watcher.hints.clone(), self.draw(|rng| rng.skewed(0, 200 * MILLI)));
            self.after(late, move |_| {
                let _ = hints.send(());
            });
        }
    }
}

fn store_error(fault: CallFault) -> StoreError {
    match fault {
        CallFault::Unknown => StoreError::unknown("the connection was cut"),
        CallFault::Throttled(after) => StoreError::throttled(after),
        CallFault::Withheld(after) => StoreError::throttled(Some(after)),
        CallFault::Refused(reason) => StoreError::refused(reason, "it could not be sent"),
    }
}

/// The store's clock at the start of a seed, in microseconds: 2026-01-01T00:00:00Z.
const EPOCH: u64 = 1_767_225_600_000_000;
