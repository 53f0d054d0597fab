//! Wrong rules about overwriting and showing records.

use tenure_core::Token;
use tenure_core::machine::Rules;

#[derive(Debug)]
pub(super) struct OverwritesForeign;

impl Rules for OverwritesForeign {
    fn overwrites_foreign(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct ObserverShowsOlder;

impl Rules for ObserverShowsOlder {
    fn may_show(&self, _: Token, _: Token) -> bool {
        true
    }
}
