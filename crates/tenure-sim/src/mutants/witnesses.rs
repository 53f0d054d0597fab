//! Wrong rules about witnesses.

use tenure_core::machine::{Rules, Sighting, Standard};

#[derive(Debug)]
pub(super) struct WithoutNonce;

impl Rules for WithoutNonce {
    fn is_dead(&self, sighting: Sighting) -> bool {
        sighting.found && sighting.same_file && !sighting.is_locked()
    }
}

#[derive(Debug)]
pub(super) struct Copied;

impl Rules for Copied {
    fn is_dead(&self, sighting: Sighting) -> bool {
        sighting.found && !sighting.is_locked() && sighting.lists_nonce
    }
}

#[derive(Debug)]
pub(super) struct Empty;

impl Rules for Empty {
    fn is_dead(&self, sighting: Sighting) -> bool {
        let empty = sighting.found && !sighting.is_locked() && !sighting.lists_nonce;
        empty || Standard.is_dead(sighting)
    }
}

#[derive(Debug)]
pub(super) struct Missing;

impl Rules for Missing {
    fn is_dead(&self, sighting: Sighting) -> bool {
        !sighting.found || Standard.is_dead(sighting)
    }
}

#[derive(Debug)]
pub(super) struct Locked;

impl Rules for Locked {
    fn is_dead(&self, sighting: Sighting) -> bool {
        sighting.found && sighting.same_file && sighting.lists_nonce
    }
}
