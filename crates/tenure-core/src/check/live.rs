use std::time::Duration;

use bytes::Bytes;
use tenure_store::{Entry, Expect, Key, Put, Reason, Refused, Store, StoreError, Throttled};

use super::Pause;
use super::lie::Lie;
use crate::{Error, ErrorKind};

/// Checks by its acts that a store keeps its conditional writes.
///
/// It sends, to the one key [`Key::scratch`], only writes that **must be refused**: a create over what exists and a
/// replace of a version that never was. (Where the scratch key does not exist yet, it is created first, and whoever
/// creates it, it is there.) No number of clients that check at once can therefore change anything, nor mistake one
/// another for a lie of the store: each writes bytes that only it can have written, and only its own forbidden bytes,
/// or an answer that says that they were applied, speak against the store.
///
/// It repeats before it convicts, and it never deletes. A store that always lies is found out; one that lies only
/// under a race is found out by the long check with races.
///
/// # Errors
///
/// * [`ErrorKind::Unsupported`]: the store broke a guarantee twice, or says itself that it cannot do this.
/// * [`ErrorKind::Unavailable`]: the store could not be asked, or would not answer clearly.
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
    /// What this check has sent and must not find: nobody else can have written these bytes.
    forbidden: Vec<(Lie, Bytes)>,
    /// How many lies were seen so far, of any kind.
    lies: u32,
    /// How many steps had to be repeated so far.
    setbacks: u32,
}

/// Why a step has to be repeated.
enum Setback {
    /// There was no clear answer.
    Failed(StoreError),
    /// Somebody else changed or deleted the scratch key meanwhile.
    Disturbed,
    /// What was seen must not be; once may be an accident.
    Lied(Lie),
}

/// How many steps may have to be repeated before the check gives up. Together the pauses take about five seconds.
const SETBACKS_MAX: u32 = 8;

/// The pause after the first setback; each later one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(50);

/// The longest pause by our own choice.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The longest pause that a store can ask for: more is for the caller to decide.
const PAUSE_ASKED_MAX: Duration = Duration::from_secs(5);

/// How often a forbidden write is to be refused once it was seen accepted: one bad server of several behind one
/// address lies only now and then.
const REFUSALS_AFTER_LIE: u32 = 3;

impl LiveCheck<'_> {
    async fn run(mut self) -> Result<(), Error> {
        let mut entry = self.scratch_entry().await?;
        for lie in Lie::FORBIDDEN {
            entry = self.must_refuse(lie, entry).await?;
        }
        Ok(())
    }

    /// The scratch entry, which is created if there is none. This is the only write of the check that may succeed.
    async fn scratch_entry(&mut self) -> Result<Entry, Error> {
        loop {
            if let Some(entry) = self.read().await? {
                return Ok(entry);
            }
            let document = self.scratch_value("creation");
            let setback = match self.store.put(&self.scratch, document, Expect::Absent).await {
                Ok(Put::Applied(_)) => Setback::Lied(Lie::Vanished),
                // Somebody else was faster.
                Ok(Put::Conflict(_)) => Setback::Lied(Lie::Hidden),
                Err(error) => Setback::Failed(error),
            };
            // Whatever the answer was, what counts is what is there now.
            match self.read().await? {
                Some(entry) => return Ok(entry),
                None => self.repeat(setback).await?,
            }
        }
    }

    /// Sends a write that must be refused until it was clearly refused, and gives the entry as it is afterwards.
    async fn must_refuse(&mut self, lie: Lie, mut before: Entry) -> Result<Entry, Error> {
        let mut refusals_owed = 1;
        while refusals_owed > 0 {
            let document = self.scratch_value(lie.name());
            self.forbidden.push((lie, document.clone()));
            let answer = self.store.put(&self.scratch, document, lie.expect(self.store)).await;
            let Some(after) = self.read().await? else {
                // Deleted from outside. If the write was accepted, then perhaps because of that.
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

    /// Whether a forbidden write was clearly refused.
    fn judge(
        &self,
        lie: Lie,
        answer: Result<Put, StoreError>,
        before: &Entry,
        after: &Entry,
    ) -> Result<(), Setback> {
        if after.value != before.value {
            // An earlier one of ours, of unknown outcome, may be what landed.
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

    /// The scratch entry as it is now, with a version that can mean something.
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

    /// Waits before a step is repeated, or ends the check where repeating is of no use.
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

    /// Twice as long after every setback, and spread by the nonce, so that many clients do not come back together.
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
            // A first lie, as the last straw: too little to convict, and no reason to trust.
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
                    "{store} denied access to the key {scratch}, on which it is checked before anything is granted: it must be \
                     allowed to read and to write there"
                );
                Error::new(ErrorKind::Unavailable, sentence)
            }
            Some(Reason::Unreachable | Reason::Gone) | None => unchecked(&format!(
                "it gave no clear answer {} times. See whether it runs and can be reached, and try again",
                self.setbacks
            )),
            // Unsupported, invalid, damaged, and what this version does not know: nothing is granted on it.
            Some(_) => {
                let sentence = format!(
                    "{store} did not bear the check of the key {scratch}, without which nothing is granted"
                );
                Error::new(ErrorKind::Unsupported, sentence)
            }
        };
        gave_up.because(error)
    }

    /// What is written: for people who look at the key, and unlike anything that another check or attempt writes.
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
