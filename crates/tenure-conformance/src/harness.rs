use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tenure::clock::{BootClock, Clock};
use tenure_store::{BoxFuture, Key, Store};

use crate::Supported;

/// Gives the suite access to a store. The author of the store implements it.
///
/// Three methods are required; every other method is a hook that enables more checks. Without the hook its checks are
/// *skipped*, with the reason in the report: they never pass.
///
/// The suite has no clock, runtime or randomness of its own, so that the same checks run on a real server and in a
/// simulation: the harness provides waits and races. (The keepers of leases have a separate thread and runtime, as
/// always; they use the harness's [`clock`](Self::clock).)
pub trait Harness: Send + Sync {
    /// Name of this store in the report.
    fn name(&self) -> String;

    /// A new connection to the *same* store: a write over one connection is visible to all others.
    ///
    /// Connections should be as separate as they are in production (own sockets, own caches; best of all, different
    /// gateways), because several servers are atomic only within one of them.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>>;

    /// Completes after `wait`. The suite has no other notion of time: each of its waits is a bounded number of pauses.
    /// The future may be dropped before it completes.
    ///
    /// On a [`clock`](Self::clock) that a test moves, a pause moves it, and lets every sleeper on it act in time: see
    /// [`TestTime`](crate::TestTime).
    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()>;

    /// The clock of the leases, which [`pause`](Self::pause) follows: the machine's, unless the harness has another.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(BootClock::new())
    }

    /// Runs all `racers` to their end, at the same time.
    ///
    /// The default polls them in turn on the calling task. That interleaves only calls that wait for a network. A store
    /// that answers without waiting needs a harness that gives every racer a separate task, on a runtime with several
    /// threads.
    fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(racers).await;
        })
    }

    /// Stops the store and starts it again, as after a crash. Old connections may be dead afterwards.
    fn restart(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot restart its store")
    }

    /// Carries out the next write, over any connection, and loses its answer.
    fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot lose an answer")
    }

    /// Loses the next write, over any connection, on its way to the store.
    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot lose a request")
    }

    /// Deletes the entry without the store's knowledge, as an administrator or a life-cycle rule does.
    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        let _ = key;
        unsupported("this harness cannot delete an entry")
    }

    /// Takes a backup of everything.
    fn snapshot(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot take a backup")
    }

    /// Restores the last [`snapshot`](Self::snapshot).
    fn restore(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot restore a backup")
    }
}

fn unsupported(reason: &'static str) -> BoxFuture<'static, Supported> {
    Box::pin(async move { Supported::No(reason.into()) })
}
