use tenure_store::{BoxError, Reason, Token};

use crate::FencingToken;

/// The reason why a fenced write was not made, or may not have been made. The message names the resource, the lease and
/// the tokens, and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// A newer token has been there. Nothing was written, and nothing under this token ever will be.
    #[error(
        "{resource} refused token {token} of {name}: token {highest} has been there. A newer holder writes: stop \
         for good",
        token = offered.token(), name = offered.name().titled()
    )]
    Stale {
        /// The resource.
        resource: String,
        /// The token that was offered.
        offered: FencingToken,
        /// The greatest token that the resource has seen.
        highest: Token,
    },
    /// The resource is fenced by another lease. Nothing was written.
    #[error(
        "{resource} is fenced by {mark_name}, and refused token {token} of {name}: use that lease, or another \
         resource",
        mark_name = mark.name().titled(), token = offered.token(), name = offered.name().titled()
    )]
    OtherLease {
        /// The resource.
        resource: String,
        /// The token that was offered.
        offered: FencingToken,
        /// The greatest token that the resource has seen.
        mark: FencingToken,
    },
    /// The token is greater than the lease's own, which is on the same server. Nothing was written.
    #[error(
        "{resource} refused token {token} of {name}: its latest grant there has token {granted}. The token is from \
         another store, or the server was restored from a backup",
        token = offered.token(), name = offered.name().titled()
    )]
    NotGranted {
        /// The resource.
        resource: String,
        /// The token that was offered.
        offered: FencingToken,
        /// The token of the latest grant; zero if the server does not know the lease.
        granted: Token,
    },
    /// The resource shows a smaller token than it has shown to this process: it was restored from a backup, or changed by
    /// another program. Nothing was written, and nothing will be until an operator acknowledges it.
    #[error(
        "{resource} shows token {shown}, and has shown token {seen} before: it was restored from a backup, or another \
         program changed it. Token {token} of {name} is refused until that is acknowledged",
        token = offered.token(), name = offered.name().titled()
    )]
    WentBack {
        /// The resource.
        resource: String,
        /// The token that was offered.
        offered: FencingToken,
        /// The greatest token that this process has seen there.
        seen: Token,
        /// The token that the resource shows now; zero if it has none.
        shown: Token,
    },
    /// The resource has content that this fence does not understand. Nothing was written.
    #[error("{resource} is not overwritten: {what}")]
    Foreign {
        /// The resource.
        resource: String,
        /// What was found, and what to do.
        what: String,
    },
    /// The resource refused the write for another reason, or could not be reached. Nothing was written.
    #[error("{resource} was not written: {source}")]
    Refused {
        /// The resource.
        resource: String,
        /// The action that the caller can take.
        reason: Reason,
        /// The error of the resource.
        source: BoxError,
    },
    /// The write may have been made, or may still be. If it replaces the content, write again under the same token. If it
    /// appends or counts, read first.
    #[error(
        "it is not known whether {resource} was written: {source}. Read it, or write again under the same token if a repetition does no harm"
    )]
    Unknown {
        /// The resource.
        resource: String,
        /// The error of the resource, or of the connection to it.
        source: BoxError,
    },
}

impl FenceError {
    /// A newer token has been there.
    pub fn stale(resource: impl Into<String>, offered: &FencingToken, highest: Token) -> Self {
        Self::Stale { resource: resource.into(), offered: offered.clone(), highest }
    }

    /// The resource refused the write for a reason other than its token.
    pub fn refused(resource: impl Into<String>, reason: Reason, source: impl Into<BoxError>) -> Self {
        Self::Refused { resource: resource.into(), reason, source: source.into() }
    }

    /// The write may have been made, or may still be.
    pub fn unknown(resource: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Unknown { resource: resource.into(), source: source.into() }
    }

    /// True if a newer token has been there.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. })
    }
}
