use std::time::Duration;

use tenure::record::Ttl;
use tenure_core::election::{ElectionRules, TermEnd};
use tenure_core::machine::Standard;

/// Pause before the next campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pauses {
    pub(super) pause: Duration,
    /// Short terms and failures in a row.
    pub(super) failures: u32,
}

impl Pauses {
    /// After a term. Others try first if this process ended it, or was asked to. A term that is shorter than its ttl counts
    /// as a failure, unless it was revoked: a command that ends at once must not use up the store.
    pub(super) fn after_term(ttl: Duration, end: TermEnd, lasted: Duration, failures: u32) -> Self {
        let yields = Standard.lets_others_first(end);
        let short = lasted < ttl && end != TermEnd::Revoked;
        let failures = if short { failures.saturating_add(1) } else { 0 };
        let doublings = match (failures, yields) {
            (0 | 1, false) => return Self { pause: Duration::ZERO, failures },
            (failures, true) => failures.saturating_sub(1),
            (failures, false) => failures - 2,
        };
        Self { pause: doubled(ttl, doublings), failures }
    }

    /// After a campaign that failed.
    pub(super) fn after_failure(ttl: Duration, failures: u32) -> Self {
        Self { pause: doubled(ttl, failures), failures: failures.saturating_add(1) }
    }
}

/// The time for which others try, doubled this many times, up to a minute.
fn doubled(ttl: Duration, doublings: u32) -> Duration {
    let mut jitter = [0; 4];
    // Without a random number, candidates are a little less spread.
    let _ = rustix::rand::getrandom(&mut jitter, rustix::rand::GetRandomFlags::empty());
    let ttl = u64::try_from(ttl.as_millis()).ok().and_then(Ttl::from_millis).unwrap_or_default();
    let first = Standard.others_try_for(ttl, u32::from_ne_bytes(jitter));
    first.saturating_mul(2u32.saturating_pow(doublings.min(16))).min(first.max(LONGEST))
}

const LONGEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(15);

    /// The pause in units of the first one, and the count of failures.
    fn after(end: TermEnd, lasted: Duration, failures: u32) -> (u64, u32) {
        let Pauses { pause, failures } = Pauses::after_term(TTL, end, lasted, failures);
        // A poll period and up to a tenth of it.
        (pause.as_millis() as u64 * 10 / (10 * 15_000 * 3 / 8), failures)
    }

    #[test]
    fn a_candidate_lets_others_try_first_after_its_own_end_and_after_a_revocation_and_not_after_a_loss() {
        assert_eq!(after(TermEnd::Released, TTL, 3), (1, 0));
        assert_eq!(after(TermEnd::Revoked, TTL / 100, 3), (1, 0));
        assert_eq!(after(TermEnd::Lost, TTL, 3), (0, 0));
    }

    #[test]
    fn the_pause_doubles_with_each_short_term_up_to_a_minute() {
        let mut failures = 0;
        let pauses = [1, 2, 4, 8].map(|_| {
            let (pause, counted) = after(TermEnd::Released, Duration::ZERO, failures);
            failures = counted;
            pause
        });
        assert_eq!((pauses, failures), ([1, 2, 4, 8], 4));
        let longest = Pauses::after_term(TTL, TermEnd::Released, Duration::ZERO, u32::MAX);
        assert_eq!(longest, Pauses { pause: LONGEST, failures: u32::MAX });
        assert_eq!(after(TermEnd::Lost, Duration::ZERO, 0), (0, 1));
        assert_eq!(after(TermEnd::Lost, Duration::ZERO, 2), (2, 3));
        let long = Duration::from_secs(3600);
        let pause = Pauses::after_term(long, TermEnd::Released, Duration::ZERO, 9).pause;
        assert!(pause > long * 3 / 8 && pause < long / 2, "never shorter than others need: {pause:?}");
    }
}
