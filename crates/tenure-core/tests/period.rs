//! The decision of a contender that runs once per period.

use std::time::Duration;

use tenure_core::machine::{Doubt, Due, Rules, Standard};
use tenure_core::record::LastSuccess;
use tenure_core::{Token, WallTime};
use tenure_store::StoreTime;

const HOUR: u64 = 3_600;
const NOW: u64 = 1_794_735_088;

/// The standing of a period of 20 hours. The times are in seconds, before the present time of the store.
fn standing(began_before: i64, wall_before: i64) -> Due {
    standing_of(Duration::from_secs(20 * HOUR), began_before, wall_before)
}

fn standing_of(period: Duration, began_before: i64, wall_before: i64) -> Due {
    let before = |seconds: i64| NOW.checked_add_signed(-seconds).unwrap();
    let began = StoreTime::from_micros(before(began_before) * 1_000_000);
    let last = LastSuccess { token: Token::new(7).unwrap(), began };
    let wall = WallTime::from_millis(before(wall_before) * 1_000);
    Standard.due(last, period, StoreTime::from_micros(NOW * 1_000_000), wall)
}

#[test]
fn a_run_is_due_once_the_period_is_over_and_not_a_moment_before() {
    let hours = |hours: i64| hours * HOUR as i64;
    let left = |since: u64| Due::NotYet {
        since: Duration::from_secs(since),
        left: Duration::from_secs(20 * HOUR - since),
    };
    assert_eq!(standing(0, 0), left(0));
    assert_eq!(standing(hours(20) - 1, 0), left(20 * HOUR - 1));
    assert_eq!(standing(hours(20), 0), Due::Now);
    assert_eq!(standing(hours(21), hours(-500)), Due::Now, "the wall clock does not matter then");
}

#[test]
fn a_skip_needs_clocks_that_are_at_most_a_twentieth_of_the_period_apart() {
    let hour = HOUR as i64;
    let beyond = Duration::from_secs(HOUR + 1);
    for sign in [1, -1] {
        assert!(matches!(standing(hour, sign * hour), Due::NotYet { .. }));
        assert_eq!(standing(hour, sign * (hour + 1)), Due::Unclear(Doubt::WallApart(beyond)));
    }
    // The store's time went back since the success: within the slack, that is a front end that is behind.
    assert_eq!(
        standing(-hour, 0),
        Due::NotYet { since: Duration::ZERO, left: Duration::from_secs(21 * HOUR) }
    );
    assert_eq!(standing(-hour - 1, 0), Due::Unclear(Doubt::SuccessAhead(beyond)));
}

#[test]
fn a_short_period_has_a_slack_of_one_minute_and_a_period_of_zero_is_always_over() {
    let second = Duration::from_secs(1);
    assert!(matches!(standing_of(second, 0, 60), Due::NotYet { .. }));
    assert!(matches!(standing_of(second, 0, 61), Due::Unclear(_)));
    assert_eq!(standing_of(Duration::ZERO, -1_000_000, 1_000_000), Due::Now);
    assert!(matches!(standing_of(Duration::MAX, 5, 0), Due::NotYet { .. }));
}
