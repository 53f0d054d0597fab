//! Delivers events of the machine to the callers that wait for them.

use std::sync::Arc;

use tenure_core::machine::{Denied, Event, Input, Left, Lost};
use tenure_core::{Holder, Token};
use tenure_store::Key;

use super::command::LeaseId;
use super::held_lease::{Granted, HeldLease};
use super::lease_entry::LeaseEntry;
use super::recorder::EventReport;
use super::reporter::Report;
use super::{Keeper, ReplyTo, SHUTDOWN_MAX, logbook_client};
use crate::host::simulation::{Duty, does};
use crate::{Error, ErrorKind};

impl Keeper {
    /// Delivers an event to the caller. Returns the input that the machine must get in response, if any.
    pub(crate) fn deliver(&mut self, id: LeaseId, event: Event) -> Option<Input> {
        if let Event::Denied(_) = &event {
            self.add_to_logbook(id);
        }
        self.void_verdict_after(&event);
        let distrust = self.leases.get(&id).and_then(|entry| self.breach_error(&entry.key));
        let entry = self.leases.get_mut(&id)?;
        let mut input = None;
        match &event {
            Event::Granted { token, deadline, .. } => {
                if let Some(remove) =
                    entry.dead_witness.take().and_then(|dead| self.witnesses.removal_of_dead(dead))
                {
                    self.background.run(remove);
                }
                if entry.witness.is_some() {
                    self.witnesses.refill(self.entropy.nonce().to_bits());
                }
                let wanted = match entry.reply_to.take() {
                    Some(ReplyTo::Lease(reply)) => {
                        let granted = Granted {
                            key: entry.key.clone(),
                            holder: Arc::clone(&entry.holder),
                            token: *token,
                            store: Arc::clone(&self.store_name),
                            deadline: *deadline,
                            witness: entry.witness.clone(),
                        };
                        let held = HeldLease::new(granted, Arc::clone(&self.clock), self.fork_guard);
                        let held = entry.held_lease.insert(Arc::new(held));
                        reply.send(Ok(Arc::clone(held))).is_ok()
                    }
                    Some(ReplyTo::Handle(reply)) => {
                        let handle = entry.machine.term_ref().expect("it was granted");
                        // Another process may act under the resumed handle, with or without this answer.
                        entry.detached = reply.send(Ok(handle)).is_ok() || entry.resumes.is_some();
                        entry.detached
                    }
                    Some(ReplyTo::End(_)) | None => false,
                };
                // The caller no longer waits: release at once.
                if !wanted {
                    input = Some(Input::Release);
                }
            }
            Event::Renewed { deadline } => {
                if let Some(held) = &entry.held_lease {
                    if held.extend(*deadline) {
                        for reply in entry.renewal_replies.drain(..) {
                            let _ = reply.send(Ok(()));
                        }
                    } else {
                        input = input_after_latch(held);
                    }
                }
            }
            Event::AtRisk(_) => {
                if let Some(held) = &entry.held_lease {
                    held.at_risk();
                }
            }
            Event::Lost(why) => match &entry.held_lease {
                Some(held) => {
                    if does(Duty::LatchAtLoss) {
                        held.latch(why.clone());
                    }
                    for reply in entry.renewal_replies.drain(..) {
                        let _ = reply.send(Err(held.lost_error()));
                    }
                    if held.is_drained() {
                        input = Some(Input::Drained);
                    }
                }
                // The handle was never delivered, so no process has acted under it.
                None => input = Some(Input::Drained),
            },
            Event::Denied(Denied::Cancelled) if self.closing.is_some() => {
                let error = shut_down_error(&entry.key, &self.store_name);
                entry.deny(error);
            }
            Event::Denied(Denied::Cancelled) if distrust.is_some() => {
                distrust.into_iter().for_each(|error| entry.deny(error));
            }
            Event::Denied(denied) => {
                let mut error = match (denied, entry.resumes) {
                    (Denied::StaleHandle(why), Some(token)) => stale_handle_error(
                        &entry.key,
                        &entry.holder,
                        token,
                        &self.store_name,
                        &why.to_string(),
                    ),
                    _ => denied.error(&entry.key, &self.store_name, &entry.holder),
                };
                if let Some(said) = entry.last_error.take() {
                    error = error.because(said.to_string());
                }
                entry.deny(error);
            }
            Event::Left(left) => {
                let result = || left_error(entry, &self.store_name, *left);
                if let Some(closing) = &mut self.closing {
                    closing.errors.extend(result());
                }
                let results: Vec<_> =
                    entry.release_replies.iter().map(|_| result().map_or(Ok(()), Err)).collect();
                for (reply, result) in entry.release_replies.drain(..).zip(results) {
                    entry.replies.push(Box::new(move || drop(reply.send(result))));
                }
                if let Some(ReplyTo::End(reply)) = entry.reply_to.take() {
                    let ended = match left {
                        Left::Lapsing => Err(not_ended_error(entry, &self.store_name)),
                        Left::Vacated | Left::Nothing => Ok(*left),
                    };
                    entry.replies.push(Box::new(move || drop(reply.send(ended))));
                }
            }
            Event::WentBack { .. } | Event::Keeping { .. } | Event::Outlived { .. } => {}
        }
        let (token, holder, key) = (entry.token(), Arc::clone(&entry.holder), entry.key.clone());
        let store = Arc::clone(&self.store_name);
        let forgotten = self.keys.get(&key).is_some_and(|known| known.forgotten);
        self.reporter.report(match event {
            Event::WentBack { seen, shown: None } if forgotten => {
                Report::Forgotten { store, key, token: seen }
            }
            event => Report::Event(EventReport { store, key, holder, token, event: event.into() }),
        });
        input
    }
}

impl Keeper {
    /// Adds the sighting of a contender that gives up to the logbook, for the next contender on this machine.
    fn add_to_logbook(&mut self, id: LeaseId) {
        let (Some(logbook), Some(entry)) = (&self.logbook, self.leases.get_mut(&id)) else { return };
        let Some(known) = self.keys.get(&entry.key).filter(|known| known.worth_logging) else { return };
        if let Some(seen) = known.sightings.latest()
            && logbook_client::runs_out(&seen.content)
            && let Some(recalled) = seen.to_recall()
        {
            logbook.add(&entry.key, &recalled, seen.returned, true);
            entry.logbook_pending = true;
        }
    }
}

pub(crate) fn shut_down_error(key: &Key, store: &str) -> Error {
    let sentence =
        format!("{} on {store} is not granted: the coordinator is shut down. Connect again", key.titled());
    Error::new(ErrorKind::Unavailable, sentence)
}

/// Input for a machine whose lease was latched elsewhere: the deadline has passed. After a release there is none: the
/// release is the next input, and its answer would be lost if the lease were gone by then.
fn input_after_latch(held: &HeldLease) -> Option<Input> {
    match held.loss() {
        Some(Lost::Released) => None,
        _ => Some(Input::Latched),
    }
}

/// Error for a term of another process that could not be ended.
fn not_ended_error(entry: &LeaseEntry, store: &str) -> Error {
    let (key, holder, token) = (&entry.key, &entry.holder, entry.token().unwrap_or(Token::ZERO));
    let sentence = format!(
        "{} of {holder} (token {token}) on {store} could not be released: try again, or wait until it runs out \
         within {}",
        key.titled(),
        entry.timing.ttl()
    );
    unavailable_error(entry, sentence)
}

/// Error with the last answer of the store as its source.
fn unavailable_error(entry: &LeaseEntry, sentence: String) -> Error {
    let error = Error::new(ErrorKind::Unavailable, sentence);
    match &entry.last_error {
        Some(said) => error.because(said.to_string()),
        None => error,
    }
}

/// The answer to a holder that reports a success.
pub(super) fn success_answer(entry: &LeaseEntry, store: &str) -> Result<(), Error> {
    if entry.machine.records_success() {
        return Ok(());
    }
    let (key, holder, token) = (&entry.key, &entry.holder, entry.token().unwrap_or(Token::ZERO));
    let sentence = format!(
        "the success of {} of {holder} (token {token}) on {store} cannot be recorded, because the store has no clock, or its \
         clock is not set: use a store with a clock",
        key.titled()
    );
    Err(Error::new(ErrorKind::Unsupported, sentence))
}

fn left_error(entry: &LeaseEntry, store: &str, left: Left) -> Option<Error> {
    let holder: &Holder = &entry.holder;
    match left {
        Left::Vacated => None,
        Left::Nothing if entry.machine.records_success() => {
            let token = entry.token().unwrap_or(Token::ZERO);
            let sentence = format!(
                "the success of {} of {holder} (token {token}) on {store} was not recorded, because the record was deleted or \
                 another holder was granted the lease before the release",
                entry.key.titled()
            );
            Some(Error::new(ErrorKind::Lost, sentence))
        }
        Left::Nothing => None,
        Left::Lapsing => {
            let token = entry.token().unwrap_or(Token::ZERO);
            let what =
                format!("{} of {holder} (token {token}) on {store} could not be vacated", entry.key.titled());
            Some(unavailable_error(
                entry,
                format!("{what}: it has lapsed, and contenders may have waited for its ttl"),
            ))
        }
    }
}

/// Error for a lease that is not vacated when the time for a shutdown is over; `None` if it was never granted.
pub(super) fn pending_error(entry: &LeaseEntry, store: &str) -> Option<Error> {
    let held = entry.held_lease.as_ref()?;
    let (key, holder, token, ttl) = (&entry.key, &entry.holder, held.token, entry.timing.ttl());
    let what = format!(
        "{} of {holder} (token {token}) on {store} could not be vacated within {SHUTDOWN_MAX:?}",
        key.titled()
    );
    if held.is_drained() {
        return Some(unavailable_error(
            entry,
            format!("{what}: it lapses, and contenders wait for its ttl of {ttl}"),
        ));
    }
    let sentence = format!(
        "{what}, because work under it still runs: stop the work, or contenders wait for its ttl of {ttl}"
    );
    Some(Error::new(ErrorKind::Unavailable, sentence))
}

/// Error for a handle that is no longer valid.
pub(crate) fn stale_handle_error(key: &Key, holder: &Holder, token: Token, store: &str, why: &str) -> Error {
    let sentence = format!(
        "{} of {holder} (token {token}) on {store} is no longer held under this handle, stop acting: {why}",
        key.titled()
    );
    Error::new(ErrorKind::Lost, sentence)
}
