use std::time::Duration;

use bytes::Bytes;
use tenure_store::{Entry, Expect, Key, Put, Reason, Refused, Store, StoreError, Throttled};

use super::Pause;
use super::lie::Lie;
use crate::{Error, ErrorKind};

/// Tests that a store keeps the guarantees of its conditional writes.
///
/// The check sends only writes that the store **must refuse**, to the one key [`Key::scratch`]: a create over an
/// existing entry, and a replace of a version that never existed. If the scratch key does not exist yet, the check
/// creates it first. So clients that check at the same time change nothing. Nor do they mistake one another for a lie
/// of the store: each writes unique bytes. Only its own forbidden bytes, or an answer that says they were applied,
/// count against the store.
///
/// The check repeats a write before it convicts the store, and never deletes. It finds a store that always lies. The
/// long check with races finds a store that lies only under a race.
///
/// # Errors
///
/// * [`ErrorKind::Unsupported`]: the store broke a guarantee twice, or reports that it cannot do this.
/// * [`ErrorKind::Misconfigured`]: the store does not exist.
/// * [`ErrorKind::Unavailable`]: the store was unreachable, or gave no clear answer.
pub async fn check_live(store: &dyn Store, pause: Pause<'_>, nonce: u128) -> Result<(), Error> {
    let check =
        LiveCheck { store, pause, nonce, scratch: Key::scratch(), forbidden: vec![], lies: 0, setbacks: 0 };
    check.run().await
}

struct LiveCheck<'a> {
    store: &'a dyn Store,
    pause: Pause<'a>,
    nonce: u128,
    scratch: Key,
    /// The forbidden values that this check has sent, and must not find: no other client can have written these bytes.
    forbidden: Vec<(Lie, Bytes)>,
    /// Number of lies so far, of any kind.
    lies: u32,
    /// Number of repeated steps so far.
    setbacks: u32,
}

/// The reason why a step must be repeated.
enum Setback {
    /// There was no clear answer.
    Failed(StoreError),
    /// Another client changed or deleted the scratch key during the step.
    Disturbed,
    /// The store lied; a single lie may be an accident.
    Lied(Lie),
}

/// Maximum number of repeated steps before the check gives up. Together the pauses take about five seconds.
const SETBACKS_MAX: u32 = 8;

/// Pause after the first setback; each later one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(50);

/// Maximum pause that the check chooses itself.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Maximum pause at the request of a store: the caller decides about longer ones.
const PAUSE_ASKED_MAX: Duration = Duration::from_secs(5);

/// Number of refusals required after a forbidden write was accepted: if one of several servers behind an address is
/// bad, it lies only sometimes.
const REFUSALS_AFTER_LIE: u32 = 3;

impl LiveCheck<'_> {
    async fn run(mut self) -> Result<(), Error> {
        let mut entry = self.scratch_entry().await?;
        for lie in Lie::FORBIDDEN {
            entry = self.must_refuse(lie, entry).await?;
        }
        Ok(())
    }

    /// The scratch entry, created if there is none. This is the only write of the check that may succeed.
    async fn scratch_entry(&mut self) -> Result<Entry, Error> {
        loop {
            if let Some(entry) = self.read().await? {
                return Ok(entry);
            }
            let document = self.scratch_value("creation");
            let setback = match self.store.put(&self.scratch, document, Expect::Absent).await {
                Ok(Put::Applied(_)) => Setback::Lied(Lie::Vanished),
                // Another client was faster: then the read shows its entry.
                Ok(Put::Conflict(_)) => Setback::Lied(Lie::Hidden),
                Err(error) => Setback::Failed(error),
            };
            // Only the current entry counts, whatever the answer was.
            match self.read().await? {
                Some(entry) => return Ok(entry),
                None => self.repeat(setback).await?,
            }
        }
    }

    /// Sends a write that the store must refuse, until it has clearly refused it. Returns the entry after that.
    async fn must_refuse(&mut self, lie: Lie, mut before: Entry) -> Result<Entry, Error> {
        let mut refusals_owed = 1;
        while refusals_owed > 0 {
            let document = self.scratch_value(lie.name());
            self.forbidden.push((lie, document.clone()));
            let answer = self.store.put(&self.scratch, document, lie.expect(self.store)).await;
            let Some(after) = self.read().await? else {
                // Deleted from outside. If the write was accepted, that may be the reason.
                self.repeat(Setback::Disturbed).await?;
                before = self.scratch_entry().await?;
                continue;
            };
            match self.judge(lie, answer, &before, &after) {
                Ok(()) => refusals_owed -= 1,
                Err(setback) => {
                    if matches!(setback, Setback::Lied(_)) {
                        refusals_owed = REFUSALS_AFTER_LIE;
                    }
                    self.repeat(setback).await?;
                }
            }
            before = after;
        }
        Ok(before)
    }

    /// Succeeds if the store has clearly refused a forbidden write.
    fn judge(
        &self,
        lie: Lie,
        answer: Result<Put, StoreError>,
        before: &Entry,
        after: &Entry,
    ) -> Result<(), Setback> {
        if after.value != before.value {
            // An earlier write of this check, of unknown outcome, may have landed.
            if let Some((lie, _)) = self.forbidden.iter().find(|(_, bytes)| *bytes == after.value) {
                return Err(Setback::Lied(*lie));
            }
        }
        match answer {
            Ok(Put::Applied(_)) => Err(Setback::Lied(lie)),
            Err(error) => Err(Setback::Failed(error)),
            Ok(Put::Conflict(_)) if after.value != before.value => Err(Setback::Disturbed),
            Ok(Put::Conflict(_)) if after.version != before.version => {
                Err(Setback::Lied(Lie::UnsteadyVersion))
            }
            Ok(Put::Conflict(_)) => Ok(()),
        }
    }

    /// The current scratch entry, with a valid version.
    async fn read(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let setback = match self.store.get(&self.scratch).await {
                Ok(reading) => match reading.entry {
                    Some(entry) if entry.version.as_str().is_empty() => Setback::Lied(Lie::EmptyVersion),
                    Some(entry) if entry.version == self.store.identity().impossible_version => {
                        Setback::Lied(Lie::ImpossibleVersion)
                    }
                    entry => return Ok(entry),
                },
                Err(error) => Setback::Failed(error),
            };
            self.repeat(setback).await?;
        }
    }

    /// Waits before a step is repeated, or ends the check if repeating is useless.
    async fn repeat(&mut self, setback: Setback) -> Result<(), Error> {
        if let Setback::Lied(lie) = setback {
            self.lies += 1;
            if self.lies >= Lie::LIES_TO_REFUSE {
                return Err(lie.refusal(self.store));
            }
        }
        if let Setback::Failed(StoreError::Refused(Refused { reason, .. })) = &setback
            && *reason != Reason::Unreachable
        {
            return Err(self.give_up(setback));
        }
        self.setbacks += 1;
        if self.setbacks >= SETBACKS_MAX {
            return Err(self.give_up(setback));
        }
        let asked = match setback {
            Setback::Failed(StoreError::Throttled(Throttled { after, .. })) => after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let pause = self.next_pause().max(asked.min(PAUSE_ASKED_MAX));
        (self.pause)(pause).await;
        Ok(())
    }

    /// The next pause: twice as long after every setback, and spread by the nonce, so that many clients do not return
    /// together.
    fn next_pause(&self) -> Duration {
        let doubled = PAUSE_FIRST.saturating_mul(1 << (self.setbacks - 1)).min(PAUSE_MAX);
        let spread = (self.nonce >> (8 * (self.setbacks % 16))) as u8;
        doubled / 2 + doubled / 2 * u32::from(spread) / u32::from(u8::MAX)
    }

    fn give_up(&self, setback: Setback) -> Error {
        let (store, scratch) = (self.store, &self.scratch);
        let unchecked = |why: &str| {
            let sentence = format!("{store} could not be checked before anything is granted: {why}");
            Error::new(ErrorKind::Unavailable, sentence)
        };
        let error = match setback {
            Setback::Failed(error) => error,
            // A first lie at the last setback: not enough to convict, but no reason to trust the store.
            Setback::Lied(_) => {
                return unchecked(
                    "it seems to break a promise, and did not answer clearly often enough to be sure",
                );
            }
            Setback::Disturbed => {
                return unchecked(&format!(
                    "something else keeps changing the key {scratch}, which belongs to Tenure alone"
                ));
            }
        };
        let reason = match &error {
            StoreError::Refused(Refused { reason, .. }) => Some(*reason),
            StoreError::Unknown(_) | StoreError::Throttled(_) => None,
        };
        let gave_up = match reason {
            Some(Reason::Denied) => {
                let sentence = format!(
                    "{store} denied access to the key {scratch}, with which Tenure checks it before it grants a \
                     lease: allow these credentials to read and write that key"
                );
                Error::new(ErrorKind::Unavailable, sentence)
            }
            Some(Reason::Unreachable | Reason::Gone) | None => unchecked(&format!(
                "it gave no clear answer {} times. See whether it runs and can be reached, and try again",
                self.setbacks
            )),
            Some(Reason::Missing) => {
                Error::new(ErrorKind::Misconfigured, format!("{store} cannot be used: {error}"))
            }
            // Unsupported, invalid, damaged, and reasons that this version does not know: nothing is granted on the
            // store.
            Some(_) => {
                let sentence = format!(
                    "{store} refused a call of the safety check on the key {scratch}, so nothing is granted: fix the \
                     cause, or use another store"
                );
                Error::new(ErrorKind::Unsupported, sentence)
            }
        };
        gave_up.because(error)
    }

    /// The value to write: it explains itself to a reader of the key, and no other check or attempt writes the same.
    fn scratch_value(&self, write: &str) -> Bytes {
        let document = serde_json::json!({
            "tenure": 1,
            "scratch": true,
            "about": "Tenure checks here that this store keeps its conditional writes. This is not a lease.",
            "write": write,
            "attempt": self.forbidden.len() + 1,
            "nonce": format!("{:032x}", self.nonce),
        });
        document.to_string().into()
    }
}
