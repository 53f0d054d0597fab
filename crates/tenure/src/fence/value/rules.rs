use tenure_core::record::Nonce;
use tenure_fence::{FenceError, FencingToken};
use tenure_store::Expect;

use super::machine::{Act, Base};

/// The decisions of a fenced write. Every mutant of the tests replaces exactly one of them.
pub(super) trait Rules {
    /// Decides whether a resource with this mark admits the token. It is asked before every write, also after a conflict.
    fn admits(
        &mut self,
        offered: &FencingToken,
        resource: &str,
        mark: Option<&FencingToken>,
    ) -> Result<(), FenceError> {
        offered.check(resource, mark)
    }

    /// The mark that an admitted write or seal leaves.
    fn mark(&self, act: &Act, offered: &FencingToken, mark: Option<&FencingToken>) -> FencingToken {
        let _ = (act, mark);
        offered.clone()
    }

    /// The condition of a write: exactly the entry that the token was checked against.
    fn expect(&self, base: &Base) -> Expect {
        match base {
            Base::Absent => Expect::Absent,
            Base::Entry { version, .. } => Expect::Version(version.clone()),
        }
    }

    /// The nonce of a write, which is drawn for it.
    fn nonce(&self, drawn: Nonce) -> Nonce {
        drawn
    }
}

/// The decisions as they are used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standard;

impl Rules for Standard {}
