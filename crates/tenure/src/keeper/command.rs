use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::Token;
use tenure_core::machine::{AcquireParams, Recalled};
use tenure_store::{BoxFuture, Key, Store};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::reporter::Report;
use super::weak_keeper::WeakKeeper;
use super::{LastError, ReplyTo};
use crate::Error;
use crate::host::fork::ForkGuard;
use crate::trust::breach::Breach;

/// Identifies one lease of one coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(pub(super) u64);

/// Calls on the store that belong to no lease, such as those of an observer.
pub(crate) type Visit = Box<dyn FnOnce(Arc<dyn Store>) -> BoxFuture<'static, ()> + Send>;

/// Request to a keeper.
pub(crate) enum Command {
    /// Acquire the lease, resume it, or end it.
    Acquire {
        id: LeaseId,
        key: Key,
        params: Box<AcquireParams>,
        witnessed: bool,
        token: Option<Token>,
        failures: Option<Arc<LastError>>,
        recalled: Option<Recalled>,
        reply_to: ReplyTo,
    },
    /// Renew it now.
    Renew { id: LeaseId, reply: oneshot::Sender<Result<(), Error>> },
    /// Release it.
    Release { id: LeaseId, reply: Option<oneshot::Sender<Result<(), Error>>> },
    /// No work runs under it any more.
    Drained { id: LeaseId },
    /// The work under it cannot be stopped.
    CannotStop { id: LeaseId, because: Arc<str> },
    /// Its work is done: its release says so.
    Succeeded { id: LeaseId, reply: oneshot::Sender<Result<(), Error>> },
    /// Pass a report on.
    Report(Report),
    /// The store gave an answer about this key that a sound store does not give by itself, or broke a promise.
    Suspect { key: Key, breach: Option<Breach> },
    /// Make calls on the store, on the keeper's runtime.
    Visit(Visit),
    /// Release everything, and refuse new requests.
    ShutDown { reply: oneshot::Sender<Vec<Error>> },
}

/// Channel to a keeper. When all of them are dropped, the keeper releases everything and ends.
#[derive(Clone, Debug)]
pub(crate) struct KeeperHandle {
    commands: mpsc::UnboundedSender<Command>,
    ids: Arc<AtomicU64>,
    fork_guard: ForkGuard,
    closing: CancellationToken,
}

impl KeeperHandle {
    pub(crate) fn new(fork_guard: ForkGuard) -> (Self, mpsc::UnboundedReceiver<Command>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let (ids, closing) = (Arc::default(), CancellationToken::new());
        (Self { commands, ids, fork_guard, closing }, receiver)
    }

    /// A channel that does not keep the keeper running.
    pub(crate) fn downgrade(&self) -> WeakKeeper {
        WeakKeeper::new(&self.commands)
    }

    pub(crate) fn next_id(&self) -> LeaseId {
        LeaseId(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a command. If the keeper has ended, every lease is lost already, and the command has no effect. A forked
    /// copy of the process has no keeper, and must not even touch the locks of the channel.
    pub(crate) fn send(&self, command: Command) {
        if self.fork_guard.is_present() {
            if let Command::ShutDown { .. } = command {
                self.closing.cancel();
            }
            let _ = self.commands.send(command);
        }
    }

    /// True in the process of the keeper, and false in a forked copy of it.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.fork_guard.is_present()
    }

    /// True if the keeper grants no more leases: it was shut down, has ended, or lives in another process.
    pub(crate) fn is_over(&self) -> bool {
        !self.fork_guard.is_present() || self.closing.is_cancelled() || self.commands.is_closed()
    }

    /// Cancelled when a shutdown begins, for calls that wait and have no lease.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Sends a command and returns the receiver of its answer. The receiver fails if the keeper has ended.
    pub(crate) fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer
    }
}
