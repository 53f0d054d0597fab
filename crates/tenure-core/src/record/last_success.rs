use tenure_store::StoreTime;

use crate::Token;

/// The latest term whose holder reported that the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastSuccess {
    /// The token of the term.
    pub token: Token,
    /// The store's time when the term was granted.
    pub began: StoreTime,
}
