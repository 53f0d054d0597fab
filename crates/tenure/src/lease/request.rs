use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{AcquireMode, AcquireParams, Heed, Patience, Recalled};
use tenure_core::record::Record;
use tenure_core::{Holder, Timing};
use tenure_store::{Key, Reach, StoreClock};

use super::secret::Secret;
use super::{Handle, KeeperCall, Lease};
use crate::host::entropy::draw;
use crate::keeper::{Connection, LastError};
use crate::{Error, ErrorKind};

/// A request for a lease.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until acquire() or try_acquire() is awaited"]
pub struct Request {
    connection: Connection,
    key: Key,
    holder: Arc<Holder>,
    ttl: Duration,
    timing: Option<Timing>,
    value: Option<Arc<str>>,
    wait: Option<Duration>,
    mode: AcquireMode,
    strict: bool,
    manual: bool,
    witness: bool,
    heed: Heed,
    once_per: Option<Duration>,
    failures: Option<Arc<LastError>>,
}

impl Request {
    /// Default ttl.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(15);

    pub(crate) fn new(connection: Connection, key: Key) -> Self {
        let holder = Arc::clone(&connection.holder);
        Self {
            connection,
            key,
            holder,
            ttl: Self::DEFAULT_TTL,
            timing: None,
            value: None,
            wait: None,
            mode: AcquireMode::Wait,
            strict: false,
            manual: false,
            witness: true,
            heed: Heed::Ttl,
            once_per: None,
            failures: None,
        }
    }

    /// The same request, for another key.
    pub(crate) fn of_key(mut self, key: Key) -> Self {
        self.key = key;
        self
    }

    /// Sets the ttl, with the default timing for it.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self.timing = None;
        self
    }

    /// Sets all durations.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = Some(timing);
        self
    }

    /// Sets the holder, instead of the coordinator's default. The name is informational.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.holder = Arc::new(holder);
        self
    }

    /// A small value to write with the grant, which other processes can read. It stays in the record after the release.
    pub fn value(mut self, value: &str) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Sets the longest wait of [`acquire`](Self::acquire). Default: unlimited.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = Some(limit);
        self
    }

    /// Ends the lease at the first failed renewal, instead of at the deadline.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Disables automatic renewal: only [`Lease::renew`] renews.
    pub fn manual(mut self) -> Self {
        self.manual = true;
        self
    }

    /// Disables the witness: the lease is meant to outlive this process, and runs out by its ttl alone.
    pub fn without_witness(mut self) -> Self {
        self.witness = false;
        self
    }

    /// Heeds the tree: after a holder's ttl has run out, does not take over the lease as long as its witness shows that
    /// the work of the former term still runs on this machine. With a limit, takes over after that time all the same,
    /// counted from when this contender first saw the record run out.
    ///
    /// Only a process that has [`WitnessPart::Tree`](crate::WitnessPart::Tree) counts. A holder that is only late or
    /// stopped is replaced after its ttl.
    pub fn heed_tree(mut self, limit: Option<Duration>) -> Self {
        self.heed = Heed::Tree { limit };
        self
    }

    /// Withholds the grant until `period` has passed since the latest successful term began, by the store's clock. A term is
    /// successful if its holder called [`succeeded`](Lease::succeeded). So machines whose clocks differ do a short job once.
    ///
    /// Before that time, the error is of kind [`Held`](ErrorKind::Held) at once, without a wait, and
    /// [`Error::denied`](crate::Error::denied) is [`Denied::NotDue`](crate::Denied::NotDue). It is of kind
    /// [`Unsupported`](ErrorKind::Unsupported) if the store has no clock; or if the clocks of the store and of this machine differ
    /// by more than a twentieth of the period and more than a minute: the store's clock may then stand still.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tenure::{Coordinator, Denied, store::Memory};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tenure::Error> {
    /// # let coordinator = Coordinator::connect(Memory::new()).await?;
    /// let nightly = || Ok(coordinator.lease("backup")?.once_per(Duration::from_secs(20 * 3600)));
    /// # let nightly: &dyn Fn() -> Result<tenure::Request, tenure::Error> = &nightly;
    /// let lease = nightly()?.acquire().await?;
    /// // … the backup …
    /// lease.succeeded().await?;
    /// lease.release().await?;
    /// let skipped = nightly()?.acquire().await.unwrap_err();
    /// assert!(matches!(skipped.denied(), Some(Denied::NotDue { .. })));
    /// # Ok(()) }
    /// ```
    pub fn once_per(mut self, period: Duration) -> Self {
        self.once_per = Some(period);
        self
    }

    /// Asks the current holder to release, with a reason, and waits until it acknowledges or its ttl has run out. The
    /// history records it.
    pub fn revoke(mut self, because: &str) -> Self {
        self.mode = AcquireMode::Revoke(because.into());
        self
    }

    /// Takes over the lease without waiting, with a reason. The history records it.
    ///
    /// **This gives up the guarantee of at most one holder**: the current holder notices at its next renewal, and acts
    /// until then, or until its deadline if it cannot reach the store. Only a resource that checks tokens is safe.
    /// [`revoke`](Self::revoke) waits.
    pub fn take_now(mut self, because: &str) -> Self {
        self.mode = AcquireMode::TakeNow(because.into());
        self
    }

    /// Waits until the lease is granted, at most as long as [`wait`](Self::wait) allows.
    ///
    /// A store that fails does not end the wait. If a networked store denies access, the credentials may be in rotation: the
    /// wait continues until the seventh denied answer in a row, half a minute to a minute after the first, and then the error
    /// says so. [`try_acquire`](Self::try_acquire), a wait of zero and a store on this machine report it at once.
    ///
    /// Cancel-safe: dropping the future leaves at worst one unused grant, which the keeper vacates, or which lapses
    /// after one ttl.
    pub async fn acquire(self) -> Result<Lease, Error> {
        let patience = self.patience();
        self.acquire_within(patience).await
    }

    /// Tries once: the lease, or an error of kind [`Held`](ErrorKind::Held), whose [`held`](Error::held) has the holder, its
    /// token and the time left.
    ///
    /// The first grant of a key waits for the next tick of the store's clock, if that clock has a tick: in a bucket, about
    /// a second.
    ///
    /// Cancel-safe, as [`acquire`](Self::acquire) is.
    pub async fn try_acquire(self) -> Result<Lease, Error> {
        if matches!(self.mode, AcquireMode::Revoke(_)) {
            let sentence = format!("revoking lease {} means waiting for its holder: use acquire()", self.key);
            return Err(Error::new(ErrorKind::Invalid, sentence));
        }
        self.acquire_within(Patience::Once).await
    }

    /// Waits as [`acquire`](Self::acquire) does, and returns a [`Handle`]. The keeper does not renew the term: it runs
    /// out unless [`Coordinator::renew`](crate::Coordinator::renew) is called with the handle in time.
    ///
    /// Such a lease has no witness, because no process lives as long as the lease.
    pub async fn acquire_handle(self) -> Result<Handle, Error> {
        let Some(domain) = self.connection.clock.domain() else {
            let sentence = format!(
                "lease {} is not granted to a handle: this machine does not identify its clock, so that no other \
                 process could check its deadline",
                self.key
            );
            return Err(Error::new(ErrorKind::Unsupported, sentence));
        };
        let secret = Secret::new(draw());
        let mut params = self.parse(self.patience())?;
        params.secret_hash = Some(secret.hash());
        params.manual = true;
        let drift = params.timing.drift();
        let asking = KeeperCall { witnessed: false, ..self.keeper_call(params) };
        let term = asking.for_handle().await?;
        let store = self.connection.store;
        Ok(Handle {
            store,
            key: self.key.clone(),
            holder: Arc::clone(&self.holder),
            domain,
            term,
            drift,
            secret,
        })
    }

    /// Shows the errors of failed calls while it waits.
    pub(crate) fn report_failures(mut self, failures: Arc<LastError>) -> Self {
        self.failures = Some(failures);
        self
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Asks the holder of this record to release, with a reason, and waits until its term is over: the holder has
    /// released, the ttl has run out, or the witness shows that the holder is dead. Does not acquire the lease, so the
    /// next contender is granted. A term after that of the record is left alone.
    ///
    /// An error of kind [`Held`](ErrorKind::Held) means that the term is not over when the [`wait`](Self::wait) is; or
    /// that the holder cannot stop its work, and was not asked. The history records the request.
    ///
    /// ```
    /// # use tenure::{Coordinator, store::Memory};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tenure::Error> {
    /// let coordinator = Coordinator::connect(Memory::new()).await?;
    /// let lease = coordinator.lease("billing")?.acquire().await?;
    /// let record = coordinator.record("billing").await?.expect("it is held");
    /// let ending = coordinator.lease("billing")?.end_term(&record, "the node is drained");
    /// let (ended, released) = tokio::join!(ending, lease.release());
    /// ended?;
    /// # released
    /// # }
    /// ```
    pub async fn end_term(mut self, record: &Record, because: &str) -> Result<(), Error> {
        if let Some(ttl) = record.ttl {
            self = self.ttl(ttl.as_duration());
        }
        self.mode = AcquireMode::EndTerm { term: record.term, because: because.into() };
        let params = self.parse(self.patience())?;
        KeeperCall { witnessed: false, ..self.keeper_call(params) }.for_end().await.map(drop)
    }

    /// The same request for the lease of another key.
    pub(crate) fn with_key(&self, key: Key) -> Self {
        Self { key, ..self.clone() }
    }

    /// Longest wait for the work of a former holder, if the request heeds it and limits the wait.
    pub(crate) fn heeded_tree_limit(&self) -> Option<Duration> {
        match self.heed {
            Heed::Tree { limit } => limit,
            Heed::Ttl => None,
        }
    }

    /// The same request with another limit for the work of a former holder, if it heeds that work.
    pub(crate) fn with_tree_limit(mut self, to: Option<Duration>) -> Self {
        if let Heed::Tree { limit } = &mut self.heed {
            *limit = to;
        }
        self
    }

    /// Acquires as [`acquire`](Self::acquire) does, with this patience and with what an observer has seen of the key.
    pub(crate) async fn acquire_recalling(
        self,
        patience: Patience,
        recalled: Option<Recalled>,
    ) -> Result<Lease, Error> {
        let call = self.keeper_call(self.parse(patience)?);
        KeeperCall { recalled, ..call }.for_lease().await
    }

    pub(crate) fn patience(&self) -> Patience {
        let asks_first = matches!(self.mode, AcquireMode::Revoke(_) | AcquireMode::EndTerm { .. });
        match self.wait {
            None => Patience::Forever,
            Some(limit) if limit.is_zero() && !asks_first => Patience::Once,
            Some(limit) => Patience::Until(self.connection.clock.now() + limit),
        }
    }

    pub(crate) async fn acquire_within(self, patience: Patience) -> Result<Lease, Error> {
        self.keeper_call(self.parse(patience)?).for_lease().await
    }

    fn keeper_call(&self, params: AcquireParams) -> KeeperCall<'_> {
        KeeperCall {
            connection: &self.connection,
            key: &self.key,
            params,
            witnessed: self.witness,
            token: None,
            failures: self.failures.clone(),
            recalled: None,
        }
    }

    /// Finds every mistake of the caller before anything is sent.
    pub(crate) fn parse(&self, patience: Patience) -> Result<AcquireParams, Error> {
        let invalid = |what: String| Err(Error::new(ErrorKind::Invalid, what));
        let timing = match self.timing {
            Some(timing) => timing,
            None => Timing::new(self.ttl)?,
        };
        let guarantees = &self.connection.guarantees;
        let timing = timing.bearable_for(&self.connection.store, guarantees)?;
        if let Some(value) = &self.value
            && value.len() > Record::VALUE_MAX
        {
            let (max, is) = (Record::VALUE_MAX, value.len());
            return invalid(format!("the value of lease {} has at most {max} bytes, not {is}", self.key));
        }
        if let AcquireMode::Revoke(because)
        | AcquireMode::TakeNow(because)
        | AcquireMode::EndTerm { because, .. } = &self.mode
            && (because.trim().is_empty()
                || because.len() > Holder::TEXT_MAX
                || because.chars().any(char::is_control))
        {
            let max = Holder::TEXT_MAX;
            return invalid(format!(
                "taking over lease {} needs a reason of 1 to {max} bytes on one line",
                self.key
            ));
        }
        if self.once_per.is_some() && guarantees.clock < StoreClock::Floors {
            let (key, store) = (&self.key, &self.connection.store);
            let sentence = format!(
                "lease {key} on {store} cannot be granted once per period, because the store has no clock that all holders \
                 share: use a store with a clock"
            );
            return Err(Error::new(ErrorKind::Unsupported, sentence));
        }
        Ok(AcquireParams {
            holder: Arc::clone(&self.holder),
            timing,
            store_clock: guarantees.clock,
            clock_tick: guarantees.clock_tick,
            process: self.connection.process.clone(),
            witness: None,
            secret_hash: None,
            value: self.value.clone(),
            patience,
            strict: self.strict,
            manual: self.manual,
            hint_pause: match guarantees.reach {
                Reach::Process | Reach::Machine => Duration::ZERO,
                // A look may cost a call on a network.
                _ => timing.retry(),
            },
            heed: self.heed,
            once_per: self.once_per,
            mode: self.mode.clone(),
        })
    }
}
