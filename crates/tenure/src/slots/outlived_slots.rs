use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::record::Record;
use tenure_store::BoxFuture;

use crate::clock::{Clock, Instant};

/// Slots that have run out while the work of their former holders still runs. Each attempt at a slot is a contender of
/// its own; this keeps the time for which all of them together have waited.
pub(super) struct OutlivedSlots {
    clock: Arc<dyn Clock>,
    /// Longest wait for the work of one former holder, if it is limited.
    limit: Option<Duration>,
    slots: BTreeMap<u16, OutlivedSlot>,
    /// The ends of those waits.
    ends: FuturesUnordered<BoxFuture<'static, u16>>,
}

struct OutlivedSlot {
    record: Arc<Record>,
    since: Instant,
}

impl OutlivedSlots {
    pub(super) fn new(clock: Arc<dyn Clock>, limit: Option<Duration>) -> Self {
        Self { clock, limit, slots: BTreeMap::new(), ends: FuturesUnordered::new() }
    }

    /// The work under this record of the slot still runs.
    pub(super) fn insert(&mut self, index: u16, record: &Arc<Record>) {
        if self.slots.get(&index).is_some_and(|slot| slot.record.nonce == record.nonce) {
            return;
        }
        let since = self.clock.now();
        self.slots.insert(index, OutlivedSlot { record: Arc::clone(record), since });
        if let Some(limit) = self.limit {
            let end = self.clock.sleep_until(since + limit);
            self.ends.push(Box::pin(async move {
                end.await;
                index
            }));
        }
    }

    /// The slot was read with this record.
    pub(super) fn saw(&mut self, index: u16, record: Option<&Arc<Record>>) {
        let is_same = |slot: &OutlivedSlot| record.is_some_and(|record| record.nonce == slot.record.nonce);
        if self.slots.get(&index).is_some_and(|slot| !is_same(slot)) {
            self.slots.remove(&index);
        }
    }

    /// Longest wait that is left for the work in this slot.
    pub(super) fn remaining(&self, index: u16) -> Option<Duration> {
        let waited = self.slots.get(&index).map(|slot| self.clock.now().since(slot.since));
        self.limit.map(|limit| limit.saturating_sub(waited.unwrap_or_default()))
    }

    pub(super) fn record(&self, index: u16) -> Option<&Arc<Record>> {
        self.slots.get(&index).map(|slot| &slot.record)
    }

    /// The next slot whose wait is over; `None` if there is none at the moment.
    pub(super) async fn next_end(&mut self) -> Option<u16> {
        self.ends.next().await
    }
}

impl fmt::Debug for OutlivedSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutlivedSlots").field("slots", &self.slots.keys()).finish_non_exhaustive()
    }
}
