//! Wrong rules of groups of slots.

use std::time::Duration;

use tenure_core::Instant;
use tenure_core::record::Ttl;
use tenure_core::slots::{GroupSize, SlotMemory, SlotRules, Suspicion};

#[derive(Debug)]
pub(super) struct OffByOne;

impl SlotRules for OffByOne {
    fn is_within(&self, index: u16, size: GroupSize) -> bool {
        index <= size.get()
    }
}

#[derive(Debug)]
pub(super) struct SizeUnchecked;

impl SlotRules for SizeUnchecked {
    fn size_agrees(&self, _: GroupSize, _: GroupSize) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct SizeBeforeGrant;

impl SlotRules for SizeBeforeGrant {
    fn believes_earlier_size(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct ResizeEvicts;

impl SlotRules for ResizeEvicts {
    fn keeps_after_resize(&self, index: u16, size: GroupSize) -> bool {
        index < size.get()
    }
}

#[derive(Debug)]
pub(super) struct SlotPollsTooOften;

impl SlotRules for SlotPollsTooOften {
    fn poll_after(&self, records: Ttl, _: u32) -> Duration {
        records.as_duration() / 40
    }
}

#[derive(Debug)]
pub(super) struct OnlyTheFirst;

impl SlotRules for OnlyTheFirst {
    fn next_slot(&self, _: Instant, _: &[SlotMemory], _: Duration) -> Option<u16> {
        Some(0)
    }
}

#[derive(Debug)]
pub(super) struct FreeByStamp;

impl SlotRules for FreeByStamp {
    fn is_free_by_stamp(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct StampsUnread;

impl SlotRules for StampsUnread {
    fn suspicion(&self, _: Instant, _: &SlotMemory, _: Ttl) -> Option<Suspicion> {
        None
    }
}
