use bytes::Bytes;

use crate::{Expect, Purpose};

/// One conditional write: the value, the condition, and the purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Write {
    /// The value to store.
    pub value: Bytes,
    /// The entry that must be there.
    pub expect: Expect,
    /// Meaning of the write for other participants. It never changes the condition.
    pub purpose: Purpose,
}

impl Write {
    /// A write with the purpose [`Purpose::Change`].
    pub fn new(value: impl Into<Bytes>, expect: Expect) -> Self {
        Self { value: value.into(), expect, purpose: Purpose::Change }
    }

    /// Sets the purpose.
    #[must_use]
    pub fn for_purpose(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }
}
