//! The lease that a user holds.

mod handle;
mod keeper_call;
mod request;
mod secret;
mod work;
mod work_guard;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use tenure_core::machine::Lost;
use tenure_core::{Holder, Token};
use tenure_fence::FencingToken;
use tenure_store::Key;
use tokio_util::sync::CancellationToken;

pub use handle::Handle;
pub(crate) use keeper_call::KeeperCall;
pub use request::Request;
pub use work_guard::WorkGuard;

use crate::fence::{Fenced, IdempotencyKey};
use crate::host::simulation::{Duty, does};
use crate::host::witness::WitnessPart;
use crate::keeper::{Command, Event, EventReport, HeldLease, KeeperHandle, LeaseId, LeaseState, Renewal};
use crate::{Error, ErrorKind};

/// A granted lease. Share it by reference. Dropping it releases it.
///
/// Each call computes from the clock whether the lease is held. No timer that a stalled runtime could miss is involved.
///
/// # A check can be outdated, a token cannot
///
/// A process can be paused after its check and before its write:
///
/// ```no_run
/// # async fn example(lease: &tenure::Lease) -> Result<(), tenure::Error> {
/// # async fn compute() -> String { String::new() }
/// # async fn write(_: String) {}
/// # async fn write_fenced(_: u64, _: String) {}
/// // Wrong: after a pause right here, the write comes from a process that is no longer the holder.
/// lease.check()?;
/// write(compute().await).await;
///
/// // Right: the resource refuses a token smaller than one it has seen, atomically with the write.
/// let report = compute().await;
/// lease.check()?;
/// write_fenced(lease.token().get(), report).await;
/// # Ok(()) }
/// ```
#[must_use = "dropping a lease releases it"]
pub struct Lease {
    id: LeaseId,
    keeper: KeeperHandle,
    shared: Arc<HeldLease>,
}

impl Lease {
    pub(crate) fn new(id: LeaseId, keeper: KeeperHandle, shared: Arc<HeldLease>) -> Self {
        Self { id, keeper, shared }
    }

    /// The token. Send it with every write.
    pub fn token(&self) -> Token {
        self.shared.token
    }

    /// The token with the name of the lease, for a resource that is fenced by hand: a message, a request, a statement of
    /// one's own. Take it anew for each write, after a [`check`](Self::check).
    pub fn fencing_token(&self) -> &FencingToken {
        &self.shared.fencing_token
    }

    /// This resource, written under the token of this lease. It refuses the write if a newer holder has been there.
    pub fn fenced<'a, F: ?Sized>(&'a self, fence: &'a F) -> Fenced<'a, F> {
        Fenced::new(self, fence)
    }

    /// The key of a request to a system that has no fence, but drops a second request with the same key: mail, a payment, a
    /// third party's API. The sequence number is one of the caller's: every request of this term needs its own, and a
    /// repetition the same. Fails if the lease is lost: send nothing then.
    pub fn idempotency_key(&self, sequence: u64) -> Result<IdempotencyKey, Error> {
        self.check()?;
        Ok(IdempotencyKey::new(self.fencing_token(), sequence))
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.shared.key
    }

    /// The holder: this process.
    pub fn holder(&self) -> &Holder {
        &self.shared.holder
    }

    /// Time until the deadline; zero once the lease is lost.
    pub fn remaining(&self) -> Duration {
        self.shared.left().unwrap_or_default()
    }

    /// `Ok` while the lease is held, otherwise an error of kind [`Lost`](crate::ErrorKind::Lost). Call it with `?` at
    /// the start of each step. It costs one clock read and a few atomic loads.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        if self.shared.is_held() { Ok(()) } else { Err(self.shared.lost_error()) }
    }

    /// Waits for the loss, and returns its cause.
    pub async fn lost(&self) -> Lost {
        self.shared.lost().await
    }

    /// Error of the last failed call for this lease, which explains why the lease is at risk or lost; `None` if no call
    /// failed.
    pub fn last_error(&self) -> Option<Arc<str>> {
        self.shared.last_error()
    }

    /// A token that is cancelled when the lease is lost, for spawned and blocking work. Cancelling it yourself has no
    /// effect on the lease.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.shared.cancellation().child_token()
    }

    /// Runs `work` while the lease is held: polls it only then, and drops it when the lease is lost. The error names
    /// the cause.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        work::Work::new(self, work).await
    }

    /// Registers work outside [`run`](Self::run): the lease is not vacated before the guard is dropped. Fails if the
    /// lease is lost already.
    pub fn work_guard(&self) -> Result<WorkGuard, Error> {
        WorkGuard::begin(self)
    }

    /// The state of the lease, now and at every change, until it is lost. Intermediate states may be skipped; the loss
    /// never is.
    pub fn states(&self) -> impl Stream<Item = LeaseState> + Send + use<> {
        let receiver = self.shared.states();
        stream::unfold((receiver, true, false), |(mut receiver, first, ended)| async move {
            if ended || (!first && receiver.changed().await.is_err()) {
                return None;
            }
            let state = receiver.borrow_and_update().clone();
            let ended = matches!(state, LeaseState::Lost(_));
            Some((state, (receiver, false, ended)))
        })
        .fuse()
    }

    /// Every renewal from now on, none skipped, until the lease is lost.
    pub fn renewals(&self) -> impl Stream<Item = Renewal> + Send + use<> {
        let receiver = self.shared.renewals();
        stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
            .fuse()
    }

    /// A file descriptor for another process that acts under the lease, such as a child that does the work.
    ///
    /// As long as a copy of it is open, the lease counts as held by a living holder, whatever happens to this process.
    /// It then ends by its ttl, and not at once. `part` says what that process does: the work itself locks
    /// [`Tree`](WitnessPart::Tree), which some contenders [heed](Request::heed_tree) after the ttl, too. Each call
    /// returns a separate open file description. It closes on exec: a caller that passes it on clears that flag in the
    /// child, best under a number above 100, because scripts redirect the small ones. Without it, a contender on this
    /// machine may be granted the lease as soon as this process is dead, while its children still run.
    ///
    /// `None` if there is no witness: on stores without a directory for one, or if none could be created.
    pub fn witness(&self, part: WitnessPart) -> Result<Option<OwnedFd>, Error> {
        self.check()?;
        let Some(witness) = self.shared.witness() else { return Ok(None) };
        witness.share(part).map(Some).map_err(|error| {
            let sentence = format!(
                "the witness {} of lease {} on {} cannot be passed on: {error}",
                witness.named().name,
                self.key(),
                self.shared.store
            );
            Error::new(ErrorKind::Unavailable, sentence).because(error)
        })
    }

    /// Renews now. With [`Request::manual`] this is the only renewal.
    ///
    /// Returns when the renewal is confirmed, or when the lease is lost: a lost answer is read back and retried until
    /// the deadline. After a failed call the store gets a pause, usually of half a renewal period or more: with a long ttl
    /// that takes minutes. A caller that cannot wait so long drops the future. That does not undo a pending renewal: the
    /// keeper continues, [`states`](Self::states) shows the risk, and [`renewals`](Self::renewals) the success.
    pub async fn renew(&self) -> Result<(), Error> {
        self.check()?;
        let renewed = self.keeper.ask(|reply| Command::Renew { id: self.id, reply });
        tokio::select! {
            // The loss and the answer may arrive together; the loss counts.
            biased;
            _ = self.shared.cancellation().cancelled() => Err(self.shared.lost_error()),
            answer = renewed => answer.unwrap_or_else(|_| Err(self.shared.lost_error())),
        }
    }

    /// Reports that the work of this term is done. The release writes it into the record, together with the time at which the
    /// term began by the store's clock, for requests with [`once_per`](Request::once_per).
    ///
    /// Call it before [`release`](Self::release), which fails if the success was not recorded. It sends nothing to the store. Fails
    /// if the lease is lost, because the work was not done under it; and with [`ErrorKind::Unsupported`] if the store has no
    /// clock. If the process dies before the release is written, the success is not recorded, and the work is done again.
    pub async fn succeeded(&self) -> Result<(), Error> {
        self.check()?;
        let answer = self.keeper.ask(|reply| Command::Succeeded { id: self.id, reply });
        answer.await.unwrap_or_else(|_| Err(self.shared.lost_error()))
    }

    /// Releases the lease, and waits until the next contender can be granted.
    ///
    /// The belief ends at the first poll. Then the call waits until every [`run`](Self::run) has dropped its work, so
    /// it may be called from inside one, and only then writes the vacant record. If the work never ends, or the store
    /// cannot be reached, the lease lapses by its ttl, and the error says so. Dropping the future changes nothing: the
    /// keeper continues the release.
    pub async fn release(&self) -> Result<(), Error> {
        self.check()?;
        if does(Duty::LatchAtRelease) {
            self.shared.latch(Lost::Released);
        }
        let left = self.keeper.ask(|reply| Command::Release { id: self.id, reply: Some(reply) });
        left.await.unwrap_or_else(|_| Err(self.shared.lost_error()))
    }

    /// True while the lease is held.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.shared.is_held()
    }

    /// Reports that a resource refused a write of this holder.
    pub(crate) fn report_refusal(&self, resource: &str, highest: Token) {
        let HeldLease { store, key, holder, token, .. } = &*self.shared;
        let event = Event::Fenced { resource: resource.into(), highest };
        let (store, key, holder) = (Arc::clone(store), key.clone(), Arc::clone(holder));
        self.keeper.downgrade().report_event(EventReport { store, key, holder, token: Some(*token), event });
    }

    /// State that the lease shares with its keeper.
    pub(crate) fn shared(&self) -> &Arc<HeldLease> {
        &self.shared
    }

    /// Waits until the keeper has nothing more to do for the lease, after its loss: it is vacated, taken over or lapsed.
    pub(crate) async fn left(&self) {
        // If the keeper has forgotten the lease, it drops the reply channel at once.
        let _ = self.keeper.ask(|reply| Command::Release { id: self.id, reply: Some(reply) }).await;
    }

    /// Ends the belief; the keeper then vacates in the background.
    pub(crate) fn give_up(&self) {
        self.shared.latch(Lost::Released);
        self.keeper.send(Command::Release { id: self.id, reply: None });
    }

    fn drained(&self) {
        self.keeper.send(Command::Drained { id: self.id });
    }
}

impl fmt::Debug for Lease {
    /// One line, as in `Lease(billing/nightly on file:/locks, token 7, held by host-a)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldLease { key, store, token, holder, .. } = &*self.shared;
        write!(f, "Lease({key} on {store}, token {token}, ")?;
        match self.shared.loss() {
            None => write!(f, "held by {holder})"),
            Some(lost) => write!(f, "lost by {holder}: {lost})"),
        }
    }
}

impl Drop for Lease {
    /// Ends the belief; the keeper then vacates in the background.
    fn drop(&mut self) {
        self.give_up();
    }
}
