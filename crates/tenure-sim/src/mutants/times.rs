//! Wrong rules about time.

use std::time::Duration;

use tenure_core::machine::{RenewalRoom, Rules, Walls};
use tenure_core::record::{Nonce, Ttl};
use tenure_core::{Drift, Instant, Timing};
use tenure_store::{StoreClock, Version};

#[derive(Debug)]
pub(super) struct DeadlineFromAnswer;

impl Rules for DeadlineFromAnswer {
    fn deadline(&self, _: Instant, answered: Instant, ttl: Ttl, drift: Drift) -> Instant {
        answered + drift.shorten(ttl.as_duration())
    }
}

#[derive(Debug)]
pub(super) struct WaitFromRequest;

impl Rules for WaitFromRequest {
    fn observed_from(&self, sent: Instant, _: Instant) -> Instant {
        sent
    }
}

#[derive(Debug)]
pub(super) struct HolderWithoutDrift;

impl Rules for HolderWithoutDrift {
    fn deadline(&self, sent: Instant, _: Instant, ttl: Ttl, _: Drift) -> Instant {
        sent + ttl.as_duration()
    }
}

#[derive(Debug)]
pub(super) struct DriftOfTheWrongSign;

impl Rules for DriftOfTheWrongSign {
    fn deadline(&self, sent: Instant, _: Instant, ttl: Ttl, drift: Drift) -> Instant {
        sent + drift.lengthen(ttl.as_duration())
    }
}

#[derive(Debug)]
pub(super) struct ContenderWithoutDrift;

impl Rules for ContenderWithoutDrift {
    fn runs_out_at(&self, from: Instant, records: Ttl, _: Ttl, _: Drift) -> Instant {
        from + records.as_duration()
    }
}

#[derive(Debug)]
pub(super) struct OwnTtl;

impl Rules for OwnTtl {
    fn runs_out_at(&self, from: Instant, _: Ttl, own: Ttl, drift: Drift) -> Instant {
        from + drift.lengthen(own.as_duration())
    }
}

#[derive(Debug)]
pub(super) struct WallClockAges;

impl Rules for WallClockAges {
    fn aged_from(
        &self,
        returned: Instant,
        _: Option<Duration>,
        _: StoreClock,
        clocks: Walls,
    ) -> Option<Instant> {
        let age = clocks.now.as_millis().saturating_sub(clocks.written.as_millis());
        Some(returned - Duration::from_millis(age))
    }
}

#[derive(Debug)]
pub(super) struct VersionWithoutNonce;

impl Rules for VersionWithoutNonce {
    fn same_observation(&self, old: (&Version, Nonce), new: (&Version, Nonce)) -> bool {
        old.0 == new.0
    }
}

#[derive(Debug)]
pub(super) struct RenewalAfterDeadline;

impl Rules for RenewalAfterDeadline {
    fn may_go_on(&self, now: Instant, deadline: Instant) -> bool {
        now < deadline + Duration::from_secs(1)
    }
}

#[derive(Debug)]
pub(super) struct PauseDoesNotGrow;

impl Rules for PauseDoesNotGrow {
    fn renewal_pause(&self, room: RenewalRoom, timing: &Timing, _: u32) -> Option<Duration> {
        Some(timing.retry()).filter(|pause| *pause < room.until_stop)
    }
}

#[derive(Debug)]
pub(super) struct LastRenewalTooLate;

impl Rules for LastRenewalTooLate {
    fn renewal_pause(&self, room: RenewalRoom, timing: &Timing, _: u32) -> Option<Duration> {
        Some(room.until_stop + timing.margin())
    }
}

#[derive(Debug)]
pub(super) struct WaitsTooLong;

impl Rules for WaitsTooLong {
    fn runs_out_at(&self, from: Instant, records: Ttl, _: Ttl, _: Drift) -> Instant {
        from + 10 * records.as_duration()
    }
}

#[derive(Debug)]
pub(super) struct PollsTooOften;

impl Rules for PollsTooOften {
    fn next_look(&self, _: Option<Instant>, sent: Instant, records: Ttl, _: u32) -> Instant {
        sent + records.as_duration() / 30
    }
}
