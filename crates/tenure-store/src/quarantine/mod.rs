//! A store that may forget acknowledged writes when its server restarts: nothing is granted after a restart until every
//! lease from before it has run out.
//!
//! `docs/rfcs/0010-a-store-that-may-forget.md` has the reasons, and the interleavings that break weaker rules.

mod admission;
mod rules;
mod run_marks;
mod run_sighting;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use admission::Admission;
pub use rules::{QuarantineRules, StandardQuarantine};
pub use run_marks::RunMarks;
pub use run_sighting::RunSighting;

use crate::{Expect, Key, StoreError, Version, Write};

/// The quarantine of one run of a server, for one connection of one participant. It has no clock and performs no I/O.
///
/// A *run* is the time from one start of a server to its end, and has a random id. A restart breaks every connection. So
/// the id that a participant reads when it opens a connection is that of all calls on this connection.
///
/// A participant creates a quarantine when it opens a connection, and asks it about every write. Times are those of the
/// participant's own clock, which counts from the start of its machine and never jumps.
///
/// ```
/// use std::time::Duration;
/// use tenure_store::{Admission, Expect, Key, Purpose, Quarantine, RunMarks, RunSighting, Version, Write};
///
/// let seconds = Duration::from_secs;
/// let sighting = RunSighting::new("run-2", "boot-1", seconds(1_000));
/// let quarantine = Quarantine::new(seconds(60), &sighting, &RunMarks::default());
/// let key = Key::parse("billing/nightly")?;
///
/// // A grant waits, a renewal does not, and a version from before the restart conditions nothing.
/// let grant = Write::new("…", Expect::Version(quarantine.version("7"))).for_purpose(Purpose::Grant { token: 8 });
/// let renewal = grant.clone().for_purpose(Purpose::Renewal);
/// let late = Write::new("…", Expect::Version(Version::new("run-1:7"))).for_purpose(Purpose::Renewal);
/// assert_eq!(quarantine.admit(&key, &grant, seconds(1_010)), Admission::Wait(seconds(62)));
/// assert_eq!(quarantine.admit(&key, &renewal, seconds(1_010)), Admission::Send);
/// assert_eq!(quarantine.admit(&key, &late, seconds(1_010)), Admission::Conflict);
///
/// // The participant that has waited writes the mark on the server, for all others.
/// assert!(quarantine.has_passed(seconds(1_072)));
/// assert_eq!(quarantine.admit(&key, &grant, seconds(1_072)), Admission::Send);
/// # Ok::<(), tenure_store::KeyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Quarantine {
    rules: &'static dyn QuarantineRules,
    run: Arc<str>,
    clock: Arc<str>,
    /// Longest ttl of a holder; `None` if the server does not lose acknowledged writes.
    ttl_max: Option<Duration>,
    /// Time of the sighting by this connection, on the participant's clock.
    sighted_at: Duration,
    /// Start of the quarantine, on the participant's clock.
    starts_at: Duration,
    /// Time for which the server says it has run, at its sighting by this connection.
    uptime: Option<Duration>,
    cleared: bool,
}

impl Quarantine {
    /// The quarantine of the run that a new connection has shown. `ttl_max` is the longest ttl of any holder, and `marks`
    /// are those that were read on this connection.
    pub fn new(ttl_max: Duration, sighting: &RunSighting, marks: &RunMarks) -> Self {
        Self::with_rules(ttl_max, sighting, marks, &StandardQuarantine)
    }

    /// A quarantine under other rules, for the simulation.
    pub fn with_rules(
        ttl_max: Duration,
        sighting: &RunSighting,
        marks: &RunMarks,
        rules: &'static dyn QuarantineRules,
    ) -> Self {
        let mut quarantine = Self { ttl_max: Some(ttl_max), ..Self::unneeded(sighting) };
        quarantine.rules = rules;
        quarantine.starts_at = rules.begins_at(sighting.at, sighting.uptime);
        quarantine.note(marks);
        quarantine
    }

    /// For a server that does not lose acknowledged writes, or whose loss was accepted: no write waits. A version of
    /// another run is still a conflict.
    pub fn unneeded(sighting: &RunSighting) -> Self {
        Self {
            rules: &StandardQuarantine,
            run: Arc::clone(&sighting.run),
            clock: Arc::clone(&sighting.clock),
            ttl_max: None,
            sighted_at: sighting.at,
            starts_at: sighting.at,
            uptime: sighting.uptime,
            cleared: false,
        }
    }

    /// Id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Takes in the marks on the server, read on this connection: another participant may have seen the run before, or
    /// may have cleared it.
    pub fn note(&mut self, marks: &RunMarks) {
        let cleared = marks.cleared.as_deref();
        self.cleared |= cleared.is_some_and(|cleared| self.rules.is_cleared(&self.run, cleared));
        if marks.run.as_deref() != Some(&*self.run) {
            return;
        }
        for (clock, at) in &marks.seen {
            if self.rules.counts_on(&self.clock, clock) {
                self.starts_at = self.starts_at.min((*at).max(self.earliest()));
            }
        }
    }

    /// The earliest time at which a participant can have seen the run: its start, by what the server says. A mark with
    /// an earlier time is not of this clock: two machines that were resumed from one image have the same boot id. The
    /// server's wall clock may be stepped, so its uptime only ever makes a quarantine longer.
    fn earliest(&self) -> Duration {
        let uptime = self.uptime.map(|uptime| uptime.saturating_add(UPTIME_SLACK));
        uptime.map(|uptime| self.sighted_at.saturating_sub(uptime)).unwrap_or_default()
    }

    /// The version of an entry that this connection has shown: the run, and the stamp of the entry on the server.
    pub fn version(&self, stamp: &str) -> Version {
        Version::new(format!("{}:{stamp}", self.run))
    }

    /// The stamp of a version of this run; `None` for a version of another run.
    pub fn stamp<'a>(&self, version: &'a Version) -> Option<&'a str> {
        let (run, stamp) = version.as_str().split_once(':')?;
        self.rules.is_of_run(&self.run, run).then_some(stamp)
    }

    /// Decides about a write at the time `now`, before it is sent. Writes of Tenure's own keys do not wait, except those of
    /// slots: no lease depends on them.
    pub fn admit(&self, key: &Key, write: &Write, now: Duration) -> Admission {
        if let Expect::Version(version) = &write.expect
            && self.stamp(version).is_none()
        {
            return Admission::Conflict;
        }
        match self.remaining(now) {
            Some(remaining)
                if !self.rules.passes(write.purpose) && (!key.is_reserved() || key.is_of_slots()) =>
            {
                Admission::Wait(remaining)
            }
            _ => Admission::Send,
        }
    }

    /// Time until the quarantine has passed; `None` if it has.
    pub fn remaining(&self, now: Duration) -> Option<Duration> {
        let ttl_max = self.ttl_max.filter(|_| !self.cleared)?;
        let end = self.starts_at + self.rules.lasts(ttl_max);
        end.checked_sub(now).filter(|remaining| !remaining.is_zero())
    }

    /// True if this participant has waited for the whole quarantine, and no mark on the server says that the run is
    /// cleared. Then the participant writes that mark, on this connection.
    pub fn has_passed(&self, now: Duration) -> bool {
        self.ttl_max.is_some() && !self.cleared && self.remaining(now).is_none()
    }

    /// The answer to a write that must wait, in words. It asks for a pause that may be shorter than the remaining time:
    /// another participant may clear the run before, and the next attempt then [learns](Self::note) it.
    pub fn withheld(&self, remaining: Duration) -> StoreError {
        let lasts = self.ttl_max.map(|ttl_max| self.rules.lasts(ttl_max)).unwrap_or_default();
        let now = (self.starts_at + lasts).saturating_sub(remaining);
        let since = match self.uptime.map(|uptime| uptime.saturating_add(now.saturating_sub(self.sighted_at)))
        {
            Some(uptime) if uptime < lasts => {
                format!("the server started {}s ago and may have forgotten leases", uptime.as_secs())
            }
            _ => "the server may have restarted and forgotten leases".to_owned(),
        };
        let left = remaining.as_millis().div_ceil(1_000);
        let cause = format!("{since}: nothing is granted for {left}s more");
        StoreError::withheld(remaining.min(PAUSE_MAX), cause)
    }
}

/// Longest pause that a withheld write asks for.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A server rounds its uptime down to seconds, and its answer takes time.
const UPTIME_SLACK: Duration = Duration::from_secs(2);
