//! Removal of unused records. It is housekeeping: leases never need it.
//!
//! It is safe whatever the clocks show. The removal is conditional on the vacant version that was read, so no holder
//! acts under the removed record. It happens only if the store's time is beyond the record's token, so the next grant,
//! which begins from that time, has a greater token. The age of a vacant record is measured by wall clocks; if they are
//! wrong, a record is removed too early or too late.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Token;
use tenure_core::machine::{Content, Floor, Rules, Seen, Standard, Standing};
use tenure_core::record::{Record, State};
use tenure_store::{Administration, Key, Prefix, Reading, Removal, Store, StoreClock, StoreTime, Version};

use super::Coordinator;
use super::forgotten::{Forgotten, WhyKept};
use crate::clock::{Clock, Instant, WallTime, call_timeout};
use crate::keeper::calls;
use crate::observe::keys;
use crate::{Error, ErrorKind};

impl Coordinator {
    /// Removes the record of a key that has been vacant for at least `vacant_for`, and returns the result. A later
    /// contender plants the record anew, with a greater token than all before.
    ///
    /// A record that is not vacant, or was written a moment ago, is kept; that is not an error.
    /// [`ErrorKind::Unsupported`] if the store's clock gives no floor for tokens, or the store cannot remove an entry.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tenure::{Coordinator, Forgotten, WhyKept, store::Memory};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tenure::Error> {
    /// let coordinator = Coordinator::connect(Memory::new()).await?;
    /// let lease = coordinator.lease("billing")?.acquire().await?;
    /// assert_eq!(coordinator.forget("billing", Duration::ZERO).await?, Forgotten::Kept(WhyKept::Held));
    /// lease.release().await?;
    /// let month = Duration::from_secs(30 * 86_400);
    /// let kept = coordinator.forget("billing", month).await?;
    /// assert!(matches!(kept, Forgotten::Kept(WhyKept::TooYoung { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn forget(&self, key: impl AsRef<str>, vacant_for: Duration) -> Result<Forgotten, Error> {
        self.judge(Key::parse(key.as_ref())?, vacant_for, ForgetMode::Remove).await
    }

    /// The result that [`forget`](Self::forget) would have now. Removes nothing.
    pub async fn would_forget(&self, key: impl AsRef<str>, vacant_for: Duration) -> Result<Forgotten, Error> {
        self.judge(Key::parse(key.as_ref())?, vacant_for, ForgetMode::Look).await
    }

    /// The keys under a prefix that have a record, in order.
    pub async fn list(&self, prefix: &Prefix) -> Result<Vec<Key>, Error> {
        let (clock, name, prefix) =
            (Arc::clone(&self.connection.clock), self.store_name().to_owned(), prefix.clone());
        self.connection
            .visit(move |store| Box::pin(async move { keys(&*clock, &*store, &name, &prefix).await }))
            .await
    }

    async fn judge(&self, key: Key, vacant_for: Duration, act: ForgetMode) -> Result<Forgotten, Error> {
        let clock = Arc::clone(&self.connection.clock);
        let asked = key.clone();
        let found = self
            .connection
            .visit(move |store| {
                Box::pin(async move {
                    let visit = ForgetVisit { store: &*store, clock: &*clock, key: &asked };
                    call_timeout(&*clock, FORGET_MAX, "forgetting a lease", visit.run(vacant_for, act)).await
                })
            })
            .await?;
        match found {
            ForgetLook::Settled(forgotten) => Ok(forgotten),
            // The standing of the holder is judged as for every observer.
            ForgetLook::NotVacant => Ok(Forgotten::Kept(match self.observe(key.as_str()).await?.standing {
                Standing::Held(_) => WhyKept::Held,
                Standing::Revoked(_) => WhyKept::Revoked,
                Standing::Reserved(_) => WhyKept::Reserved,
                Standing::RanOut | Standing::Dead => WhyKept::NotReleased,
                _ => WhyKept::Changed,
            })),
        }
    }
}

/// Dry run or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForgetMode {
    Look,
    Remove,
}

/// Result of reading one record.
enum ForgetLook {
    Settled(Forgotten),
    NotVacant,
}

/// One read of one key, and its consequences.
struct ForgetVisit<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Clock,
    key: &'a Key,
}

impl ForgetVisit<'_> {
    async fn run(&self, vacant_for: Duration, act: ForgetMode) -> Result<ForgetLook, Error> {
        let administration = self.administration()?;
        let sent = self.clock.now();
        let reading = self.store.get(self.key).await.map_err(|error| {
            let sentence = format!("lease {} on {} could not be read: {error}", self.key, self.store);
            Error::new((&error).into(), sentence).because(error)
        })?;
        let seen = self.seen(sent, reading);
        let kept = |kept| Ok(ForgetLook::Settled(Forgotten::Kept(kept)));
        let (record, version) = match &seen.content {
            Content::Absent => return Ok(ForgetLook::Settled(Forgotten::Absent)),
            Content::Foreign { what, .. } => return kept(WhyKept::Foreign(Arc::clone(what))),
            Content::Record(record, version) => (record, version),
        };
        match &record.state {
            State::Vacant => {}
            State::Closed(_) => return kept(WhyKept::Closed),
            _ if record.is_key() => return kept(WhyKept::PlainKey),
            // Held, revoked, reserved, or in a state that this version does not know.
            _ => return Ok(ForgetLook::NotVacant),
        }
        if let Some((name, _)) = record.unknown.first() {
            return kept(WhyKept::Foreign(format!("a later version wrote {name:?} into it").into()));
        }
        let has_been = self.vacant_for(record, &seen);
        if has_been < vacant_for {
            return kept(WhyKept::TooYoung { vacant_for: has_been });
        }
        if !self.next_is_greater(&seen, record.token) {
            return kept(WhyKept::AheadOfClock { token: record.token });
        }
        let removed = Forgotten::Removed { token: record.token, vacant_for: has_been };
        match act {
            ForgetMode::Look => Ok(ForgetLook::Settled(removed)),
            ForgetMode::Remove => {
                self.remove(administration, version, removed).await.map(ForgetLook::Settled)
            }
        }
    }

    async fn remove(
        &self,
        administration: &dyn Administration,
        version: &Version,
        removed: Forgotten,
    ) -> Result<Forgotten, Error> {
        match administration.remove(self.key, version).await {
            Ok(Removal::Removed) => Ok(removed),
            Ok(Removal::Conflict(_)) => Ok(Forgotten::Kept(WhyKept::Changed)),
            Err(error) => {
                let sentence = format!(
                    "the record of lease {} on {} could not be removed: {error}. Try again: a record that is no \
                     longer vacant is kept",
                    self.key, self.store
                );
                Err(Error::new((&error).into(), sentence).because(error))
            }
        }
    }

    fn administration(&self) -> Result<&dyn Administration, Error> {
        let unsupported = |why| {
            let sentence = format!("leases on {} cannot be forgotten: {why}", self.store);
            Error::new(ErrorKind::Unsupported, sentence)
        };
        if self.store.guarantees().clock < StoreClock::Floors {
            return Err(unsupported(
                "it has no clock that gives a floor for tokens, so a lease that is created again would reuse earlier \
                 tokens. Keep the records: they are small",
            ));
        }
        self.store.administration().ok_or_else(|| {
            unsupported("this kind of store cannot remove a record. Keep the records: they are small")
        })
    }

    fn seen(&self, sent: Instant, reading: Reading) -> Seen {
        let look = calls::look(reading);
        let returned = self.clock.now();
        let (from, time) = (returned, look.time);
        Seen { content: look.content, from, sent, returned, time, first_time: time, went_back: None }
    }

    /// By the wall clock of the writer, and that of the store if it has one, otherwise of this machine.
    fn vacant_for(&self, record: &Record, seen: &Seen) -> Duration {
        let now = seen.time.map_or(self.clock.wall(), |time| WallTime::from_millis(time.as_micros() / 1_000));
        Duration::from_millis(now.as_millis().saturating_sub(record.written_at.as_millis()))
    }

    /// True if a contender without a sighting would be granted a greater token now, by the rules of every grant.
    fn next_is_greater(&self, seen: &Seen, token: Token) -> bool {
        let guarantees = self.store.guarantees();
        match Standard.floor(seen, guarantees.clock) {
            // The next contender plants the record, and then waits until the clock shows a later time.
            Floor::At(time) => {
                let tick = u64::try_from(guarantees.clock_tick.as_micros()).unwrap_or(0);
                let floor = StoreTime::from_micros(time.as_micros().saturating_add(tick));
                Standard.next_token(Token::ZERO, Token::ZERO, Some(floor)).is_some_and(|next| next > token)
            }
            _ => false,
        }
    }
}

/// Longest time for one key: longer than any healthy store needs.
const FORGET_MAX: Duration = Duration::from_secs(60);
