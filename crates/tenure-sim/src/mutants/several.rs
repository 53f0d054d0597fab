//! Wrong rules about several leases at once.

use tenure_core::set::SetRules;
use tenure_store::Key;

#[derive(Debug)]
pub(super) struct OneIsEnough;

impl SetRules for OneIsEnough {
    fn believes(&self, held: &[bool]) -> bool {
        held.contains(&true)
    }
}

#[derive(Debug)]
pub(super) struct OutlivesFirstLoss;

impl SetRules for OutlivesFirstLoss {
    fn ends_with_first(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct CallersOrder;

impl SetRules for CallersOrder {
    fn order(&self, _: &mut [Key]) {}
}

#[derive(Debug)]
pub(super) struct KeepsPart;

impl SetRules for KeepsPart {
    fn keeps_part(&self) -> bool {
        true
    }
}
