use std::fmt;
use std::sync::Arc;

use tenure::store::Memory;
use tenure_store::Store;

use crate::UrlError;

/// The memory of this process, and an informational name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlace {
    name: String,
}

impl MemoryPlace {
    /// Parses the part after `memory:`.
    pub(crate) fn parse(name: &str) -> Result<Self, UrlError> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !is_plain {
            return Err(UrlError::new(format!(
                "memory:{name} has more than a plain name: write memory: or memory:name"
            )));
        }
        Ok(Self { name: name.to_owned() })
    }

    pub(crate) fn open(&self) -> Arc<dyn Store> {
        Arc::new(Memory::builder().name(&self.name).build())
    }
}

impl fmt::Display for MemoryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.name)
    }
}
