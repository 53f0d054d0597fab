//! The decisions of an election. Every mutant of the simulation replaces exactly one.

use std::fmt;
use std::time::Duration;

use super::{HealthState, TermEnd};
use crate::machine::rules::{earlier_by_chance, part_by_chance, poll_period};
use crate::machine::{Standard, Standing};
use crate::record::Ttl;
use crate::{ErrorKind, Instant, Timing, Token};

/// The decisions of an election, each with its correct implementation.
pub trait ElectionRules: fmt::Debug + Send + Sync {
    // ── campaign ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// True if this sign starts a term of this node. Only its own grant does: a record that names this node may be of a
    /// twin with the same name, or of its own earlier life.
    fn starts_term(&self, sign: Sign<'_>) -> bool {
        matches!(sign, Sign::Granted)
    }

    /// True if the node lets the others try first after such an end. It does after its own release and after a
    /// revocation, because it knows of the vacancy before every contender and would win each time. After a loss it has no such
    /// advantage, and an election without other contenders must not wait.
    fn lets_others_first(&self, end: TermEnd) -> bool {
        match end {
            TermEnd::Released | TermEnd::Revoked => true,
            TermEnd::Lost => false,
        }
    }

    /// Time for which it lets them try: one poll period of a contender that waited for this term, and a little more for
    /// that contender's call. Every waiting contender has read the vacant record by then, also without hints.
    fn others_try_for(&self, ttl: Ttl, jitter: u32) -> Duration {
        let period = poll_period(ttl);
        let twentieth = period / 20;
        period + twentieth + part_by_chance(twentieth, jitter)
    }

    /// True if this leader ends the wait after the own term with the token `ended`: another contender was granted. The
    /// name of the leader does not matter.
    fn another_was_granted(&self, ended: Token, leader: Token) -> bool {
        leader > ended
    }

    /// True if the caller must know of an error of this kind, because retries alone do not help. The node tries again
    /// all the same, after a long pause.
    fn is_permanent(&self, kind: ErrorKind) -> bool {
        match kind {
            ErrorKind::Held | ErrorKind::Lost | ErrorKind::Unavailable => false,
            ErrorKind::Fenced
            | ErrorKind::Unsupported
            | ErrorKind::Misconfigured
            | ErrorKind::Invalid
            | ErrorKind::Corrupt => true,
        }
    }

    /// Pause after this many failures in a row, the latest of this kind. It doubles each time: from the retry pause to one
    /// renewal period; after a permanent error, from one ttl to a minute or one ttl, whichever is longer.
    fn pause_after(&self, kind: ErrorKind, failures: u32, timing: &Timing, jitter: u32) -> Duration {
        let ttl = timing.ttl().as_duration();
        let (first, longest) = if self.is_permanent(kind) {
            (ttl, LONGEST_PAUSE.max(ttl))
        } else {
            (timing.retry(), timing.period())
        };
        let doubled = first.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1).min(16)));
        earlier_by_chance(doubled.min(longest.max(first)), jitter)
    }

    // ── health ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// True if a node in this state of health campaigns. Only a healthy one: another would resign soon after its grant.
    fn may_campaign(&self, health: HealthState) -> bool {
        health == HealthState::Healthy
    }

    /// Instant at which a leader resigns that has not been healthy since `since`.
    fn resigns_at(&self, since: Instant, limit: Duration) -> Instant {
        since + limit
    }

    // ── observation ───────────────────────────────────────────────────────────────────────────────────────────────

    /// True if an observer that has shown the token `shown` may show `next`: never an older one.
    fn may_show_leader(&self, shown: Token, next: Token) -> bool {
        next >= shown
    }

    /// True if the holder of a record with this standing is the leader. A revoked holder is, until it has acknowledged;
    /// a holder whose record has run out, or that is dead, is not.
    fn leads(&self, standing: &Standing) -> bool {
        standing.is_held()
    }
}

impl ElectionRules for Standard {}

/// A sign that this node may be the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign<'a> {
    /// Its own conditional write was applied.
    Granted,
    /// A record names this leader.
    Named {
        /// The name of the leader.
        leader: &'a str,
        /// The name of this node.
        own: &'a str,
    },
}

/// Longest pause after permanent errors, for a ttl up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
