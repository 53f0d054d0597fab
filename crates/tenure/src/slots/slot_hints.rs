use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SelectAll, select_all};
use futures_util::{StreamExt, stream};
use tenure_store::{BoxStream, Key, Prefix, Store};

use crate::clock::Clock;
use crate::observe::{HolderExits, Observation, Observers};

/// Hints that a slot may have changed: from the store, and from the deaths of holders on this machine.
pub(super) struct SlotHints {
    changes: SelectAll<BoxStream<'static, u16>>,
    exits: HolderExits,
}

impl SlotHints {
    /// Listens to these slots, by index.
    pub(super) fn listen(
        store: &dyn Store,
        clock: &Arc<dyn Clock>,
        observers: &Observers,
        slots: &[Key],
    ) -> Self {
        let watches = store.guarantees().watch;
        let listen = |(index, key): (u16, &Key)| {
            let hints = store.watch(&Prefix::of(key)).filter(|_| watches)?;
            Some(paced(hints, Arc::clone(clock)).map(move |()| index).boxed())
        };
        let changes = select_all((0u16..).zip(slots).filter_map(listen));
        Self { changes, exits: HolderExits::new(observers.host().clone(), Arc::clone(clock)) }
    }

    /// Watches the holder of a slot.
    pub(super) fn expect(&mut self, seen: &Observation) {
        self.exits.expect(seen);
    }

    /// The next slot that may have changed; `None` if there are no hints at the moment.
    pub(super) async fn next(&mut self) -> Option<u16> {
        tokio::select! {
            biased;
            Some(key) = self.exits.next() => key.slot_index(),
            Some(index) = self.changes.next() => Some(index),
            else => None,
        }
    }
}

impl fmt::Debug for SlotHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotHints").field("slots", &self.changes.len()).finish_non_exhaustive()
    }
}

/// The same hints with a pause after each. A stream that is always ready must not keep the keeper busy.
fn paced(hints: BoxStream<'static, ()>, clock: Arc<dyn Clock>) -> BoxStream<'static, ()> {
    stream::unfold((hints, clock, false), |(mut hints, clock, pauses)| async move {
        if pauses {
            clock.sleep_until(clock.now() + PAUSE).await;
        }
        hints.next().await?;
        Some(((), (hints, clock, true)))
    })
    .boxed()
}

/// Minimum time between two hints on one slot.
const PAUSE: Duration = Duration::from_millis(10);
