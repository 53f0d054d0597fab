use std::fmt;
use std::time::Duration;

use crate::Purpose;

/// The decisions of a quarantine, each with its correct implementation. Mutants of the simulation replace one of them.
pub trait QuarantineRules: fmt::Debug + Send + Sync {
    /// Length of the quarantine on the participant's clock: the longest ttl of a holder, and the largest drift that a
    /// participant may declare, one fifth.
    fn lasts(&self, ttl_max: Duration) -> Duration {
        ttl_max + ttl_max / 5
    }

    /// Start of the quarantine: the participant's own sighting. The server's wall clock may be stepped, so its `uptime`
    /// proves nothing.
    fn begins_at(&self, seen: Duration, uptime: Option<Duration>) -> Duration {
        let _ = uptime;
        seen
    }

    /// True if a time on the clock `other` may be compared with times on the participant's clock `own`: only if it is
    /// the same clock.
    fn counts_on(&self, own: &str, other: &str) -> bool {
        own == other
    }

    /// True if the mark `cleared` ends the quarantine of `run`: only if it names this very run. A restart may bring back
    /// the mark of an earlier run.
    fn is_cleared(&self, run: &str, cleared: &str) -> bool {
        run == cleared
    }

    /// True if a version that was read in the run `read_in` may condition a write in `run`: only in the same run. A
    /// restart may bring back an earlier entry, and with it an earlier version.
    fn is_of_run(&self, run: &str, read_in: &str) -> bool {
        run == read_in
    }

    /// True if a write with this purpose is sent during the quarantine. A renewal and a release replace an own record
    /// that was read in this run, so they make no second holder. A resumption may: the server may have forgotten that the
    /// term of the handle has ended.
    fn passes(&self, purpose: Purpose) -> bool {
        matches!(purpose, Purpose::Renewal | Purpose::Release)
    }
}

/// The correct rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardQuarantine;

impl QuarantineRules for StandardQuarantine {}
