use tenure_store::{Reason, Refused, StoreError};

/// Error of a store that could not be probed. Nothing is known about such a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The store cannot be reached, does not answer, or denies reads or writes.
    #[error("{store} could not be probed: {why}")]
    Unavailable {
        /// Name of the store.
        store: String,
        /// The last error.
        why: String,
    },
    /// The store does not exist where its URL says.
    #[error("{store} could not be probed: {why}")]
    Missing {
        /// Name of the store.
        store: String,
        /// The store's message.
        why: String,
    },
    /// The store itself reports that it does not support leases.
    #[error("{store} is refused: {why}")]
    Refused {
        /// Name of the store.
        store: String,
        /// The store's message.
        why: String,
    },
}

impl ProbeError {
    /// Error of the first call of a probe.
    pub(crate) fn of(store: String, error: &StoreError) -> Self {
        let why = error.to_string();
        match error {
            StoreError::Refused(Refused { reason: Reason::Unreachable | Reason::Denied, .. })
            | StoreError::Unknown(_)
            | StoreError::Throttled(_) => Self::Unavailable { store, why },
            StoreError::Refused(Refused { reason: Reason::Missing, .. }) => Self::Missing { store, why },
            StoreError::Refused(_) => Self::Refused { store, why },
        }
    }
}
