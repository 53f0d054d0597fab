//! Wrong rules about work that cannot be stopped, and work that outlives its holder.

use tenure_core::machine::{Rules, Sighting};
use tenure_core::record::Record;

#[derive(Debug)]
pub(super) struct LetsLapse;

impl Rules for LetsLapse {
    fn keeps_unstoppable(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct Revokes;

impl Rules for Revokes {
    fn revokes_unstoppable(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct AnotherTerm;

impl Rules for AnotherTerm {
    fn is_unstoppable(&self, record: &Record) -> bool {
        record.unstoppable.is_some()
    }
}

#[derive(Debug)]
pub(super) struct UnderATree;

impl Rules for UnderATree {
    fn work_goes_on(&self, _: Sighting) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct GuardsAlone;

impl Rules for GuardsAlone {
    fn is_dead(&self, sighting: Sighting) -> bool {
        sighting.found && sighting.same_file && !sighting.guards_locked && sighting.lists_nonce
    }
}
