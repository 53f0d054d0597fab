//! Reaction of the keeper to a store that breaks its promises.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{Shared, join_all};
use tenure_core::machine::{Content, Denied, Event, Fault, Input, Look, Lost, Purpose, Write};
use tenure_store::{BoxFuture, Key, Reason};
use tokio::sync::oneshot;

use super::background::Reply;
use super::calls::CallAnswer;
use super::command::LeaseId;
use super::lease_entry::LeaseEntry;
use super::reporter::Report;
use super::{Keeper, ReplyTo};
use crate::clock::Instant;
use crate::host::simulation::{Duty, does};
use crate::trust::breach::{self, Breach};
use crate::{Error, ErrorKind};

/// Evidence against the store.
#[derive(Debug, Default)]
pub(crate) struct Distrust {
    /// Pending removal of the verdict that the store is sound.
    voiding: Option<Shared<BoxFuture<'static, ()>>>,
}

impl Distrust {
    /// The removal of the verdict while it is pending; `None` if it is done or there is no verdict.
    fn pending_voiding(&self) -> Option<Shared<BoxFuture<'static, ()>>> {
        self.voiding.clone().filter(|voiding| voiding.peek().is_none())
    }
}

impl Keeper {
    /// Checks an answer for breaches of the store's promises, before the machine gets it.
    pub(crate) fn check_answer(&mut self, key: &Key, sent: Instant, answer: &CallAnswer) {
        if let Input::Read(Ok(look)) = &answer.input {
            self.note_forgotten(key, sent, look);
        }
        let before = self.keys.get(key).and_then(|known| known.sightings.latest());
        let (breach, doubtful, twice) = match &answer.input {
            Input::Read(Ok(look)) => (
                Breach::shown(before, look, self.store_clock),
                breach::is_doubtful(before, sent, look),
                breach::same_token(before, look),
            ),
            _ => (answer.breach.clone(), false, None),
        };
        if breach.is_some() || doubtful {
            self.void_verdict();
        }
        match (breach, twice) {
            (Some(breach), _) => self.stop_granting(breach, key),
            (None, Some(token)) => {
                let (store, key) = (Arc::clone(&self.store_name), key.clone());
                self.reporter.report(Report::SameToken { store, key, token });
            }
            (None, None) => {}
        }
    }

    /// If the key had no record at the previous read either, the earlier finding stays.
    fn note_forgotten(&mut self, key: &Key, sent: Instant, look: &Look) {
        let Some(known) = self.keys.get_mut(key) else { return };
        let (before, highest) = (known.sightings.latest(), known.sightings.highest());
        let stays = before.is_some_and(|before| before.content == Content::Absent)
            && look.content == Content::Absent
            && known.forgotten;
        known.forgotten = stays || breach::is_forgotten(before, sent, look, highest, self.store_clock);
    }

    /// Voids the verdict after an event that a sound store does not cause by itself: a record was deleted or restored, or the
    /// store does not exist any more, and another one may take its place.
    /// Leases continue; other processes check the store again before they trust it.
    pub(crate) fn void_verdict_after(&mut self, event: &Event) {
        let doubtful = matches!(
            event,
            Event::WentBack { .. }
                | Event::Lost(Lost::Deleted | Lost::Replaced { .. })
                | Event::Denied(
                    Denied::WentBack { .. }
                        | Denied::ClockStands
                        | Denied::Refused(Reason::Unsupported | Reason::Missing),
                )
                | Event::AtRisk(Fault::Refused(Reason::Unsupported | Reason::Missing))
        );
        if doubtful {
            self.void_verdict();
        }
    }

    /// Work that must complete before this write is sent.
    pub(crate) fn before_write(&mut self, id: LeaseId, write: &Write) -> Option<BoxFuture<'static, ()>> {
        let listed = match &self.leases[&id].witness {
            Some(witness) if write.purpose.is_of_a_holder() => {
                Some(self.witnesses.list(witness, write.record.nonce))
            }
            _ => None,
        };
        let voiding = self.distrust.pending_voiding().filter(|_| write.purpose == Purpose::Grant);
        match (listed, voiding) {
            (Some(listed), _) if !does(Duty::ListNonceFirst) => {
                self.background.reply_after(listed, Vec::new());
                None
            }
            (listed, None) => listed,
            (None, Some(voiding)) => Some(voiding.boxed()),
            (Some(listed), Some(voiding)) => Some(Box::pin(async move {
                voiding.await;
                listed.await;
            })),
        }
    }

    /// Sends replies after the jobs, and after a pending removal of the verdict.
    pub(crate) fn reply_after(&mut self, replies: Vec<Reply>, mut first: Vec<BoxFuture<'static, ()>>) {
        first.extend(self.distrust.pending_voiding().map(FutureExt::boxed));
        if first.is_empty() {
            replies.into_iter().for_each(|reply| reply());
        } else {
            self.background.reply_after(join_all(first).map(drop), replies);
        }
    }

    /// The error if this request may not be granted any more.
    pub(crate) fn refusal_of(&self, entry: &LeaseEntry) -> Option<Error> {
        let is_grant = entry.resumes.is_none() && !matches!(entry.reply_to, Some(ReplyTo::End(_)));
        self.breach_error(&entry.key).filter(|_| is_grant)
    }

    /// The error of every grant after a breach.
    pub(crate) fn breach_error(&self, key: &Key) -> Option<Error> {
        let (breach, on) = self.trust.breach()?;
        let store = &self.store_name;
        let sentence = format!(
            "lease {key} on {store} is not granted: the store broke a promise, {breach} (key {on}). Two holders could \
             act at once, so nothing more is granted on it: repair the store, and connect again"
        );
        Some(Error::new(ErrorKind::Unsupported, sentence))
    }

    /// Voids the verdict, so that other processes check the store again. No grant is sent before that is done.
    fn void_verdict(&mut self) {
        if self.distrust.pending_voiding().is_some() {
            return;
        }
        if let Some(end) = self.trust.void_job() {
            let (done, told) = oneshot::channel::<()>();
            let voided = self.background.limited_job(end);
            self.background.reply_after(voided, vec![Box::new(move || drop(done))]);
            self.distrust.voiding = Some(told.map(drop).boxed().shared());
        }
    }

    /// Takes in an answer to a call that belongs to no lease.
    pub(crate) fn suspect(&mut self, key: &Key, breach: Option<Breach>) {
        self.void_verdict();
        if let Some(breach) = breach {
            self.stop_granting(breach, key);
        }
    }

    /// Stops granting. A holder keeps its lease until there is evidence against that lease.
    fn stop_granting(&mut self, breach: Breach, key: &Key) {
        let what = breach.to_string().into();
        if !self.trust.convict(breach, key) {
            return;
        }
        self.reporter.report(Report::Breach { store: Arc::clone(&self.store_name), key: key.clone(), what });
        let seeking = self.leases.iter().filter(|(_, entry)| entry.machine.is_seeking());
        let seeking = seeking.filter(|(_, entry)| self.refusal_of(entry).is_some());
        let ids: Vec<_> = seeking.map(|(id, _)| *id).collect();
        for id in ids {
            self.step(id, Input::Release);
        }
    }
}
