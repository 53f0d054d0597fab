use tenure_store::Version;

use super::Purpose;
use crate::Instant;
use crate::record::Nonce;

/// The writes of one lease: the latest that was confirmed, and those whose outcome is not settled, which may have
/// landed or may land yet.
///
/// The unsettled ones all expect the same version, so at most one of them ever lands.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    confirmed: Option<Attempt>,
    expects: Option<Version>,
    outstanding: Vec<Attempt>,
}

/// One write that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The nonce it carries.
    pub nonce: Nonce,
    /// The instant before it was sent.
    pub sent: Instant,
    /// What it was for.
    pub purpose: Purpose,
}

impl Attempts {
    /// The write of ours that carries this nonce.
    pub fn find(&self, nonce: Nonce) -> Option<&Attempt> {
        self.outstanding.iter().chain(&self.confirmed).find(|attempt| attempt.nonce == nonce)
    }

    /// Whether a write may still land.
    pub(super) fn may_land(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// The version that the unsettled writes expect.
    pub(super) fn expects(&self) -> Option<&Version> {
        self.expects.as_ref()
    }

    /// When the latest write was sent.
    pub(super) fn latest_sent(&self) -> Option<Instant> {
        self.outstanding.iter().chain(&self.confirmed).map(|attempt| attempt.sent).max()
    }

    /// Adds a write. If it expects another version than those before, they can never land any more.
    pub(super) fn add(&mut self, attempt: Attempt, expects: &Version) {
        if self.expects.as_ref() != Some(expects) {
            self.outstanding.clear();
            self.expects = Some(expects.clone());
        }
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.outstanding.remove(0);
        }
        self.outstanding.push(attempt);
    }

    /// This write has landed, so no other of them will.
    pub(super) fn confirm(&mut self, attempt: Attempt) {
        self.forget_outstanding();
        self.confirmed = Some(attempt);
    }

    /// This write never lands.
    pub(super) fn settle(&mut self, nonce: Nonce) {
        self.outstanding.retain(|attempt| attempt.nonce != nonce);
    }

    /// The version they expect is gone.
    pub(super) fn forget_outstanding(&mut self) {
        self.outstanding.clear();
        self.expects = None;
    }
}

/// More than a ttl has room for, since the pause between them grows to a fortieth of it: the oldest of so many could only
/// land as a grant that nobody uses.
const OUTSTANDING_MAX: usize = 64;
