use std::time::Duration;

use tenure_core::Token;
use tokio_util::sync::CancellationToken;

use crate::{Error, Lost};

/// A term of this node as the leader. Clones are the same term; when the last one is dropped, the node resigns.
#[derive(Clone, Debug)]
#[must_use = "dropping a term resigns"]
pub struct Term(pub(super) crate::Term);

impl Term {
    same! { answers of Term:
        token() -> Token;
        remaining() -> Duration;
        check() -> Result<(), Error>;
        cancellation_token() -> CancellationToken;
    }

    same! { waits of Term:
        lost() -> Lost;
        resign() -> Result<(), Error>;
    }
}
