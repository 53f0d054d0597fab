use std::sync::Weak;

use tenure_core::Instant;

use crate::Lease;
use crate::keeper::HeldLease;

/// Reads the belief of a lease without changing it, and without keeping the lease or its witness.
#[derive(Clone, Debug)]
pub struct BeliefProbe(Weak<HeldLease>);

impl BeliefProbe {
    /// A probe of this lease.
    pub fn of(lease: &Lease) -> Self {
        Self(std::sync::Arc::downgrade(lease.shared()))
    }

    /// The deadline of the belief, on the clock of its process; `None` once it is latched, or its lease is gone.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.upgrade()?.belief_deadline()
    }
}
