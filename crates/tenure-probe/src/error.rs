use tenure_store::{Reason, Refused, StoreError};

/// Why a store could not be probed. Nothing is known of it then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// It cannot be reached, does not answer, or may not be read or written.
    #[error("{store} could not be probed: {why}")]
    Unavailable {
        /// What the store is called.
        store: String,
        /// What happened last.
        why: String,
    },
    /// It is no store for leases, as it says itself.
    #[error("{store} is refused: {why}")]
    Refused {
        /// What the store is called.
        store: String,
        /// What it said.
        why: String,
    },
}

impl ProbeError {
    /// The first call of a probe has failed.
    pub(crate) fn of(store: String, error: &StoreError) -> Self {
        let why = error.to_string();
        match error {
            StoreError::Refused(Refused { reason: Reason::Unreachable | Reason::Denied, .. })
            | StoreError::Unknown(_)
            | StoreError::Throttled(_) => Self::Unavailable { store, why },
            StoreError::Refused(_) => Self::Refused { store, why },
        }
    }
}
