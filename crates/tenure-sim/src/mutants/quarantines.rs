//! Wrong rules about a server that may forget.

use std::time::Duration;

use tenure_store::{Purpose, QuarantineRules, StandardQuarantine};

#[derive(Debug)]
pub(super) struct NoQuarantine;

impl QuarantineRules for NoQuarantine {
    fn passes(&self, _: Purpose) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct ResumesAtOnce;

impl QuarantineRules for ResumesAtOnce {
    fn passes(&self, purpose: Purpose) -> bool {
        purpose == Purpose::Resumption || StandardQuarantine.passes(purpose)
    }
}

#[derive(Debug)]
pub(super) struct ByUptime;

impl QuarantineRules for ByUptime {
    fn begins_at(&self, seen: Duration, uptime: Option<Duration>) -> Duration {
        seen.saturating_sub(uptime.unwrap_or_default())
    }
}

#[derive(Debug)]
pub(super) struct WithoutDrift;

impl QuarantineRules for WithoutDrift {
    fn lasts(&self, ttl_max: Duration) -> Duration {
        ttl_max
    }
}

#[derive(Debug)]
pub(super) struct ClearedByAnotherRun;

impl QuarantineRules for ClearedByAnotherRun {
    fn is_cleared(&self, _: &str, _: &str) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct ByAnotherClock;

impl QuarantineRules for ByAnotherClock {
    fn counts_on(&self, _: &str, _: &str) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct VersionOfAnotherRun;

impl QuarantineRules for VersionOfAnotherRun {
    fn is_of_run(&self, _: &str, _: &str) -> bool {
        true
    }
}
