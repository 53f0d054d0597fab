use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::Token;
use tenure_core::machine::AcquireParams;
use tenure_store::{BoxFuture, Key, Store};
use tokio::sync::{mpsc, oneshot};

use super::ReplyTo;
use crate::Error;
use crate::host::fork::ForkGuard;

/// One lease of one coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(u64);

/// Calls on the store that are no lease's: somebody looks.
pub(crate) type Visit = Box<dyn FnOnce(Arc<dyn Store>) -> BoxFuture<'static, ()> + Send>;

/// What a keeper is asked.
pub(crate) enum Command {
    /// Get this lease, or end it if that is what is wanted.
    Acquire {
        id: LeaseId,
        key: Key,
        params: Box<AcquireParams>,
        witnessed: bool,
        token: Option<Token>,
        reply_to: ReplyTo,
    },
    /// Renew it now.
    Renew { id: LeaseId, reply: oneshot::Sender<Result<(), Error>> },
    /// Let it go.
    Release { id: LeaseId, reply: Option<oneshot::Sender<Result<(), Error>>> },
    /// No work goes on under it any more.
    Drained { id: LeaseId },
    /// The work under it cannot be stopped.
    CannotStop { id: LeaseId, because: Arc<str> },
    /// Make calls on the store, here on the keeper's own runtime.
    Visit(Visit),
    /// Let everything go, and take nothing more.
    ShutDown { reply: oneshot::Sender<Vec<Error>> },
}

/// The way to a keeper. When all of them are dropped, the keeper lets everything go and ends.
#[derive(Clone, Debug)]
pub(crate) struct KeeperHandle {
    commands: mpsc::UnboundedSender<Command>,
    ids: Arc<AtomicU64>,
    fork_guard: ForkGuard,
}

impl KeeperHandle {
    pub(crate) fn new(fork_guard: ForkGuard) -> (Self, mpsc::UnboundedReceiver<Command>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        (Self { commands, ids: Arc::default(), fork_guard }, receiver)
    }

    pub(crate) fn next_id(&self) -> LeaseId {
        LeaseId(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a command. If the keeper is gone, every lease is lost already, and there is nothing to tell it. A forked
    /// copy of the process has no keeper, and may not even touch the locks on the way to one.
    pub(crate) fn send(&self, command: Command) {
        if self.fork_guard.is_present() {
            let _ = self.commands.send(command);
        }
    }

    /// Sends a command and gives the way to its answer. The receiver fails if the keeper is gone.
    pub(crate) fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer
    }
}
