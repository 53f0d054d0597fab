use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use tenure_core::record::Witness;
use tenure_store::{BoxFuture, Key};

use crate::clock::Clock;
use crate::keeper::HostState;
use crate::keeper::witnesses::{Until, until_unlocked};
use crate::observe::Observation;

/// Waits for the deaths of holders on this machine. Without it, the next read finds them.
pub(crate) struct HolderExits {
    host: HostState,
    clock: Arc<dyn Clock>,
    expected: HashMap<Key, Expected>,
    exits: FuturesUnordered<BoxFuture<'static, Option<Key>>>,
}

/// The witness of a holder. It is watched once: a read decides whether its end means a death.
struct Expected {
    witness: Arc<Witness>,
    abort: AbortHandle,
}

impl HolderExits {
    pub(crate) fn new(host: HostState, clock: Arc<dyn Clock>) -> Self {
        Self { host, clock, expected: HashMap::new(), exits: FuturesUnordered::new() }
    }

    /// Watches the current holder of the key instead of any previous one.
    pub(crate) fn expect(&mut self, seen: &Observation) {
        let record = seen.record.as_ref().filter(|_| seen.standing.is_held());
        let witness = record.and_then(|record| Some((record, record.witness.as_ref()?)));
        if let Some(expected) = self.expected.get(&seen.key) {
            if witness.is_some_and(|(_, witness)| *witness == expected.witness) {
                return;
            }
            expected.abort.abort();
            self.expected.remove(&seen.key);
        }
        let (Some(location), Some((record, witness))) = (&self.host.location, witness) else { return };
        if self.expected.len() >= EXPECTED_MAX {
            return;
        }
        let (abort, registration) = AbortHandle::new_pair();
        let ended = until_unlocked(
            Arc::clone(location),
            Arc::clone(&self.host.workers),
            Arc::clone(&self.clock),
            Arc::clone(witness),
            Arc::new(Mutex::new(record.holders_nonce())),
            Until::Unlocked,
        );
        let key = seen.key.clone();
        self.expected.insert(key.clone(), Expected { witness: Arc::clone(witness), abort });
        self.exits.push(Box::pin(async move {
            let ended = Abortable::new(ended, registration).await;
            ended.ok().flatten().map(|_| key)
        }));
    }

    /// The next key whose holder may have died; `None` if no holder is watched.
    pub(crate) async fn next(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.exits.next().await? {
                return Some(key);
            }
        }
    }
}

impl fmt::Debug for HolderExits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HolderExits").field("expected", &self.expected.len()).finish_non_exhaustive()
    }
}

/// Maximum number of watched holders. Each uses a part of the user's inotify limit.
const EXPECTED_MAX: usize = 256;
