//! Wrong rules about tokens.

use std::time::Duration;

use tenure_core::machine::{Floor, Rules, Seen};
use tenure_core::record::Ttl;
use tenure_core::{Instant, Token};
use tenure_store::{StoreClock, StoreTime};

#[derive(Debug)]
pub(super) struct NotRaised;

impl Rules for NotRaised {
    fn next_token(&self, previous: Token, highest: Token, _: Option<StoreTime>) -> Option<Token> {
        Some(previous.max(highest))
    }
}

#[derive(Debug)]
pub(super) struct ReleaseForgets;

impl Rules for ReleaseForgets {
    fn token_left_behind(&self, _: Token) -> Token {
        Token::ZERO
    }
}

#[derive(Debug)]
pub(super) struct AnyTime;

impl Rules for AnyTime {
    fn floor(&self, seen: &Seen, clock: StoreClock) -> Floor {
        match (clock, seen.time) {
            (StoreClock::Nothing, _) => Floor::None,
            (_, None) => Floor::ReadFirst,
            (_, Some(time)) => Floor::At(time),
        }
    }
}

#[derive(Debug)]
pub(super) struct GrantOnMissing;

impl Rules for GrantOnMissing {
    fn plants_first(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct FloorBeforeVersion;

impl Rules for FloorBeforeVersion {
    fn time_of_write(&self, before: Option<StoreTime>, answer: Option<StoreTime>) -> Option<StoreTime> {
        before.or(answer)
    }
}

#[derive(Debug)]
pub(super) struct FirstGrantAtOnce;

impl Rules for FirstGrantAtOnce {
    fn is_after_plant(&self, _: &Seen, _: Duration) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct FloorFromCache;

impl Rules for FloorFromCache {
    fn is_fresh(&self, _: &Seen, _: Instant, _: Ttl) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct FreshnessFromReturn;

impl Rules for FreshnessFromReturn {
    fn is_fresh(&self, seen: &Seen, now: Instant, own: Ttl) -> bool {
        now.since(seen.returned) <= own.as_duration()
    }
}

#[derive(Debug)]
pub(super) struct GrantsAfterGoingBack;

impl Rules for GrantsAfterGoingBack {
    fn may_grant_after_going_back(&self, _: Floor) -> bool {
        true
    }
}
