use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tenure::clock::{BootClock, Clock};
use tenure_store::{BoxFuture, Key, Store};

use crate::Supported;

/// How the suite reaches a store, given by whoever wrote the store.
///
/// Three methods are needed; everything else is a hook that makes more checks possible. A hook that is not there
/// makes its checks *skipped*, with the reason in the report: it never makes them pass.
///
/// The suite has no clock, no runtime and no randomness of its own, so that the same checks run on a real server and
/// in a simulation: waiting and racing are the harness's business. (The keepers of leases have a thread and a runtime
/// of their own, as always; they go by the harness's [`clock`](Self::clock).)
pub trait Harness: Send + Sync {
    /// What the report calls this store.
    fn name(&self) -> String;

    /// A new connection to the *same* store: what was written over one connection is there for all the others.
    ///
    /// Connections should be as separate as they are in real life (own sockets, own caches; best of all, different
    /// gateways), because several servers are atomic only within one of them.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>>;

    /// Completes after `wait`. The suite's only notion of time: every wait of its is a bounded number of pauses. It may
    /// be dropped before it completes.
    ///
    /// On a [`clock`](Self::clock) that a test moves, a pause moves it, and lets everybody who sleeps on it act in time:
    /// see [`TestTime`](crate::TestTime).
    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()>;

    /// The clock that leases are counted on, which [`pause`](Self::pause) goes along with: the machine's, unless the
    /// harness has another.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(BootClock::new())
    }

    /// Runs all `racers` to their end, at the same time.
    ///
    /// The default polls them in turn on the calling task. That interleaves calls which wait for a network, and
    /// nothing else: a store that answers without waiting needs a harness that gives every racer a task of its own,
    /// on a runtime with several threads.
    fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(racers).await;
        })
    }

    /// Stops the store and starts it again, as after a crash. Old connections may be dead afterwards.
    fn restart(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot restart its store")
    }

    /// The next write, over whichever connection, is carried out and its answer is lost.
    fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot lose an answer")
    }

    /// The next write, over whichever connection, is lost on its way to the store.
    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot lose a request")
    }

    /// Deletes the entry behind the store's back, as an administrator or a life-cycle rule does.
    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        let _ = key;
        unsupported("this harness cannot delete an entry")
    }

    /// Takes a backup of everything.
    fn snapshot(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot take a backup")
    }

    /// Goes back to the last [`snapshot`](Self::snapshot).
    fn restore(&self) -> BoxFuture<'_, Supported> {
        unsupported("this harness cannot restore a backup")
    }
}

fn unsupported(reason: &'static str) -> BoxFuture<'static, Supported> {
    Box::pin(async move { Supported::No(reason.into()) })
}
