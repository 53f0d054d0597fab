use std::time::Duration;

use tenure_store::Stamp;

use crate::Instant;

/// An entry in the listings that a contender has received.
#[derive(Clone, Debug)]
pub struct Stamped {
    /// Its stamp in the latest listing; `None` if it had no entry.
    pub stamp: Option<Stamp>,
    /// Time at which the first listing that showed this stamp was sent.
    pub first_sent: Instant,
    /// Time at which that listing was received: reads that are sent later show this entry or a later one.
    pub received: Instant,
    /// Time at which the latest listing was sent.
    pub latest_sent: Instant,
    /// True if the latest change was no renewal: the size of the value changed, too, by more than the digits of a counter.
    pub resized: bool,
}

impl Stamped {
    /// The entry, by its first listing, which was sent and received at these instants.
    pub(super) fn new(stamp: Option<Stamp>, sent: Instant, received: Instant) -> Self {
        Self { stamp, first_sent: sent, received, latest_sent: sent, resized: false }
    }

    /// Time for which the listings showed this stamp.
    pub fn stood_still(&self) -> Duration {
        self.latest_sent.since(self.first_sent)
    }

    /// Takes the entry of the next listing, and returns true if the stamp changed.
    pub(super) fn update(&mut self, stamp: Option<Stamp>, sent: Instant, received: Instant) -> bool {
        self.latest_sent = sent;
        if stamp == self.stamp {
            return false;
        }
        let size = |stamp: &Option<Stamp>| stamp.as_ref().map(Stamp::size);
        self.resized = match (size(&stamp), size(&self.stamp)) {
            (Some(Some(now)), Some(Some(before))) => now.abs_diff(before) > DIGITS,
            (now, before) => now != before,
        };
        (self.stamp, self.first_sent, self.received) = (stamp, sent, received);
        true
    }
}

/// Change of the size that a renewal may make, in bytes: the number of the write gains a digit.
const DIGITS: u64 = 2;
