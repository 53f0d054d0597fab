use tenure_store::Version;

use super::Purpose;
use crate::Instant;
use crate::record::Nonce;

/// The writes of one lease: the latest confirmed one, and those whose outcome is not settled. The latter may have
/// landed or may still land.
///
/// The unsettled ones all expect the same version, so at most one of them ever lands.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    confirmed: Option<Attempt>,
    expects: Option<Version>,
    outstanding: Vec<Attempt>,
}

/// A write that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The nonce that it carries.
    pub nonce: Nonce,
    /// The instant before it was sent.
    pub sent: Instant,
    /// Purpose of the write.
    pub purpose: Purpose,
}

impl Attempts {
    /// The own write that carries this nonce.
    pub fn find(&self, nonce: Nonce) -> Option<&Attempt> {
        self.outstanding.iter().chain(&self.confirmed).find(|attempt| attempt.nonce == nonce)
    }

    /// True if a write may still land.
    pub(crate) fn may_land(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// The version that the unsettled writes expect.
    pub(crate) fn expects(&self) -> Option<&Version> {
        self.expects.as_ref()
    }

    /// Instant at which the latest write was sent.
    pub(crate) fn latest_sent(&self) -> Option<Instant> {
        self.outstanding.iter().chain(&self.confirmed).map(|attempt| attempt.sent).max()
    }

    /// Adds a write. If it expects another version than those before, they can no longer land.
    pub(crate) fn add(&mut self, attempt: Attempt, expects: &Version) {
        if self.expects.as_ref() != Some(expects) {
            self.outstanding.clear();
            self.expects = Some(expects.clone());
        }
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.outstanding.remove(0);
        }
        self.outstanding.push(attempt);
    }

    /// Records that this write is sent only now.
    pub(crate) fn sent(&mut self, nonce: Nonce, now: Instant) {
        self.outstanding
            .iter_mut()
            .filter(|attempt| attempt.nonce == nonce)
            .for_each(|attempt| attempt.sent = now);
    }

    /// Records that this write has landed: no other unsettled one will.
    pub(crate) fn confirm(&mut self, attempt: Attempt) {
        self.forget_outstanding();
        self.confirmed = Some(attempt);
    }

    /// Records that this write never lands.
    pub(crate) fn settle(&mut self, nonce: Nonce) {
        self.outstanding.retain(|attempt| attempt.nonce != nonce);
    }

    /// Forgets the unsettled writes: the version that they expect is gone.
    pub(crate) fn forget_outstanding(&mut self) {
        self.outstanding.clear();
        self.expects = None;
    }
}

/// Maximum number of unsettled writes. A ttl has no time for so many, because the pause between them grows to a renewal
/// period. The oldest could only land as a grant that no holder uses.
const OUTSTANDING_MAX: usize = 64;
