//! The decisions of a contender for a slot. Every mutant of the simulation replaces exactly one rule.

use std::fmt;
use std::time::Duration;

use super::{GroupSize, SlotMemory};
use crate::Instant;
use crate::machine::Standard;
use crate::machine::rules::part_by_chance;
use crate::record::Ttl;

/// The decisions of a contender for a slot, each with its correct implementation.
pub trait SlotRules: fmt::Debug + Send + Sync {
    // ── at most n holders ─────────────────────────────────────────────────────────────────────────────────────────

    /// True if the group has a slot of this index: indexes begin at 0.
    fn is_within(&self, index: u16, size: GroupSize) -> bool {
        index < size.get()
    }

    /// True if a contender that expects a group of size `own` may use one of size `stored`. Only if they are equal: two
    /// sizes would be two limits.
    fn size_agrees(&self, own: GroupSize, stored: GroupSize) -> bool {
        own == stored
    }

    /// True if the size that was read before a grant is enough to believe in the slot. Never: that read misses a shrink
    /// before the grant, after which the slot is no longer in the group.
    fn believes_earlier_size(&self) -> bool {
        false
    }

    /// True if this read of the size proves that a slot granted at `granted` is in the group: only if it was sent after
    /// the grant.
    fn proves_size(&self, granted: Instant, sent: Instant) -> bool {
        sent >= granted
    }

    /// True if a holder keeps its slot although the group has this size now. Always: a resize never evicts a holder,
    /// and the slots beyond the size are not granted again.
    fn keeps_after_resize(&self, index: u16, size: GroupSize) -> bool {
        let _ = (index, size);
        true
    }

    // ── few calls ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// The slot that a contender tries first: a random one, so that contenders that start together meet rarely.
    fn first_slot(&self, slots: u16, random: u32) -> u16 {
        ((u64::from(slots) * u64::from(random)) >> 32) as u16
    }

    /// True if a slot that was denied although it looked free may be tried again. After one ttl of the records: a
    /// former holder's work may still run, which the contender heeds.
    fn may_try_again(&self, now: Instant, denied: Instant, records: Ttl) -> bool {
        now >= denied + records.as_duration()
    }

    /// The slot that a waiting contender reads next, with this pause between its reads. First one that was not read for
    /// a round of all slots, the oldest read first, so that no slot is left out. Then an unusable one that was not read
    /// for several rounds: an operator may have repaired it. Then the one that has run out first, if any has. Then the one
    /// that was read least recently.
    fn next_slot(&self, now: Instant, slots: &[SlotMemory], pause: Duration) -> Option<u16> {
        let usable = || (0u16..).zip(slots).filter(|(_, slot)| !slot.is_unusable());
        let (oldest, slot) = usable().min_by_key(|(_, slot)| slot.read_at)?;
        let round = pause * u32::try_from(slots.len()).unwrap_or(u32::MAX);
        if slot.read_at.is_none_or(|read| read + round <= now) {
            return Some(oldest);
        }
        let unusable = (0u16..).zip(slots).filter(|(_, slot)| slot.is_unusable());
        let unusable = unusable
            .filter(|(_, slot)| slot.read_at.is_none_or(|read| read + round * ROUNDS_OF_UNUSABLE <= now));
        if let Some((index, _)) = unusable.min_by_key(|(_, slot)| slot.read_at) {
            return Some(index);
        }
        let out = usable().filter_map(|(index, slot)| Some((slot.due().filter(|due| *due <= now)?, index)));
        Some(out.min().map_or(oldest, |(_, index)| index))
    }

    /// Pause between two calls of a waiting contender in a full group: at most four calls per ttl of the records.
    /// Jitter lengthens it by up to a tenth, so that many contenders spread.
    fn poll_after(&self, records: Ttl, jitter: u32) -> Duration {
        let pause = records.as_duration() / CALLS_PER_TTL;
        pause + part_by_chance(pause / 10, jitter)
    }

    // ── listings that show stamps ─────────────────────────────────────────────────────────────────────────────────

    /// True if a waiting contender lists a group of this many slots, instead of reading its slots in turn. A listing
    /// costs about twelve times as much as a read where requests are billed, so a small group is read.
    fn lists(&self, slots: u16) -> bool {
        slots >= LISTED_FROM
    }

    /// Pause between two listings: a little longer than a renewal period, so that each live holder renews between two
    /// of them. Jitter lengthens it by up to a tenth.
    fn list_after(&self, records: Ttl, jitter: u32) -> Duration {
        let pause = records.as_duration() * 7 / 20;
        pause + part_by_chance(pause / 10, jitter)
    }

    /// Reason to read a slot, by its stamps and its latest read; `None` if it needs no read. A renewal changes the
    /// stamp of a slot, and not the size of its record. A stamp that changed or stood still never says that the slot is
    /// free: only a read does.
    fn suspicion(&self, now: Instant, slot: &SlotMemory, records: Ttl) -> Option<Suspicion> {
        let stamped = slot.stamped.as_ref()?;
        let period = slot.ttl().unwrap_or(records).as_duration() / RENEWALS_PER_TTL;
        let stood_still = stamped.stood_still() >= period;
        if slot.is_read_since_stamped() {
            return slot.due().filter(|due| *due <= now).map(|_| Suspicion::NotRenewed);
        }
        match (stamped.resized, stood_still) {
            (true, true) => Some(Suspicion::Released),
            (true, false) => Some(Suspicion::ChangedHands),
            (false, true) => Some(Suspicion::NotRenewed),
            (false, false) => None,
        }
    }

    /// True if a slot whose stamp changed counts as free without a read. Never: renewals change it, too.
    fn is_free_by_stamp(&self) -> bool {
        false
    }
}

/// Reason to read a slot, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// Its record has another size, and was not renewed since.
    Released,
    /// Its record has another size: it was granted or released.
    ChangedHands,
    /// It was not renewed for a renewal period, or since its latest read until it ran out: its holder is late or dead,
    /// or released it with a record of the same size.
    NotRenewed,
}

impl SlotRules for Standard {}

/// Number of rounds after which an unusable slot is read again.
const ROUNDS_OF_UNUSABLE: u32 = 4;

/// Maximum number of calls of a waiting contender per ttl.
const CALLS_PER_TTL: u32 = 4;

/// Minimum number of renewals of a live holder per ttl.
const RENEWALS_PER_TTL: u32 = 3;

/// Smallest group that a waiting contender lists. Smaller ones are read completely at least once per ttl.
const LISTED_FROM: u16 = 4;
