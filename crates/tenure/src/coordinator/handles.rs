//! Terms without a keeper: the owner of the handle renews and releases them.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Timing;
use tenure_core::machine::{AcquireMode, Left, Lost, Patience};

use super::Coordinator;
use crate::keeper::stale_handle_error;
use crate::lease::{Handle, KeeperCall, Lease, Request};
use crate::{Error, ErrorKind};

impl Coordinator {
    /// Renews the term of a handle once, and returns the next handle. The old one is invalid from then on.
    ///
    /// Returns when the renewal is confirmed. Fails with [`ErrorKind::Lost`] when the term is over: after the deadline
    /// of the handle it makes no attempt. After every other error the handle stays valid. If the future is dropped, the
    /// outcome of its renewal is unknown; if it succeeded, the handle is invalid.
    pub async fn renew(&self, handle: &Handle) -> Result<Handle, Error> {
        self.check(handle)?;
        let mode = AcquireMode::Resume(handle.term.clone());
        let term = self.call(handle, mode, false)?.for_handle().await?;
        Ok(Handle { term, ..handle.clone() })
    }

    /// Continues the term of a handle in this process, which keeps it from now on. The handle becomes invalid.
    ///
    /// No process may act under the handle after this call, whatever its outcome. The record may already name the
    /// witness of this process, so contenders are admitted at once if this process exits or drops the future. After an
    /// error other than [`ErrorKind::Lost`] the handle can be resumed or renewed again until its deadline, and acted
    /// under once that has succeeded.
    pub async fn resume(&self, handle: &Handle) -> Result<Lease, Error> {
        self.check(handle)?;
        self.call(handle, AcquireMode::Resume(handle.term.clone()), true)?.for_lease().await
    }

    /// Ends the term of a handle, so that the next contender is granted at once. Call it after all work under the
    /// handle has ended.
    ///
    /// Fails with [`ErrorKind::Lost`] if another holder was granted, or a copy of the handle was renewed. A handle can
    /// be released after its deadline; if that succeeds, no other holder had the lease in between.
    pub async fn release(&self, handle: &Handle) -> Result<(), Error> {
        self.check_store(handle)?;
        let mode = AcquireMode::Leave(handle.term.clone());
        match self.call(handle, mode, false)?.for_end().await? {
            Left::Vacated => Ok(()),
            Left::Nothing | Left::Lapsing => {
                let record = self.record(handle.key()).await?;
                let why = record.map_or(Lost::Deleted, |record| Lost::of_handle(&record, &handle.term));
                Err(self.stale_error(handle, &why.to_string()))
            }
        }
    }

    /// The call about the term of a handle. `kept` if this process keeps it from then on.
    fn call<'a>(
        &'a self,
        handle: &'a Handle,
        mode: AcquireMode,
        kept: bool,
    ) -> Result<KeeperCall<'a>, Error> {
        let limit = match &mode {
            AcquireMode::Leave(_) => self.connection.clock.now() + RELEASE_MAX,
            _ => handle.term.deadline,
        };
        let timing = Timing::builder(handle.ttl().as_duration()).drift(handle.drift).build()?;
        let request = Request::new(self.connection.clone(), handle.key().clone()).timing(timing);
        let mut params = request.parse(Patience::Until(limit))?;
        params.holder = Arc::clone(&handle.holder);
        params.secret_hash = Some(handle.secret.hash());
        (params.mode, params.manual) = (mode, !kept);
        let (connection, token) = (&self.connection, Some(handle.token()));
        Ok(KeeperCall {
            connection,
            key: handle.key(),
            params,
            witnessed: kept,
            token,
            failures: None,
            recalled: None,
        })
    }

    fn check(&self, handle: &Handle) -> Result<(), Error> {
        self.check_store(handle)?;
        if handle.is_of(&*self.connection.clock) {
            return Ok(());
        }
        let why = "its deadline is on the clock of another boot or time namespace, and cannot be checked here. \
        Acquire the lease again";
        Err(self.stale_error(handle, why))
    }

    fn check_store(&self, handle: &Handle) -> Result<(), Error> {
        if handle.store() == self.store_name() {
            return Ok(());
        }
        let (key, theirs, ours) = (handle.key(), handle.store(), self.store_name());
        let sentence = format!(
            "the handle is of lease {key} on another store: it was granted on {theirs}, and this is {ours}. Name its \
             own store"
        );
        Err(Error::new(ErrorKind::Invalid, sentence))
    }

    fn stale_error(&self, handle: &Handle, why: &str) -> Error {
        stale_handle_error(handle.key(), handle.holder(), handle.token(), self.store_name(), why)
    }
}

/// Longest time to try a release if the store does not answer. After that the lease lapses by its ttl.
const RELEASE_MAX: Duration = Duration::from_secs(60);
