//! Nodes of a cluster, and the hash slots that they serve.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::ServerError;

use crate::open::Address;

/// The nodes of a cluster, as far as their own answers have named them. Empty for a single server.
#[derive(Debug, Default)]
pub(crate) struct ClusterNodes(Mutex<HashMap<u16, Address>>);

/// A node that a server names instead of an answer. The server has done nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) slot: u16,
    pub(crate) node: Address,
    /// True if it holds for this call only.
    pub(crate) once: bool,
}

impl ClusterNodes {
    /// The node of a Redis key, if an answer has named it.
    pub(crate) fn node(&self, name: &str) -> Option<Address> {
        let slots = self.lock();
        if slots.is_empty() { None } else { slots.get(&hash_slot(name.as_bytes())).cloned() }
    }

    pub(crate) fn moved(&self, slot: u16, node: &Address) {
        self.lock().insert(slot, node.clone());
    }

    /// Forgets a node that does not serve its slots any more.
    pub(crate) fn forget(&self, node: &Address) {
        self.lock().retain(|_, of| of != node);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u16, Address>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Redirect {
    /// The redirection in this error of the server at `from`, if it is one: `MOVED 3999 127.0.0.1:6381`.
    pub(crate) fn of(error: &ServerError, from: &Address) -> Option<Self> {
        let once = match error.code() {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let (slot, node) = error.details()?.split_once(' ')?;
        let (host, port) = node.rsplit_once(':')?;
        let (slot, port) = (slot.parse().ok()?, port.parse().ok()?);
        let host = match (host, from) {
            // The same host as that of the server that answers.
            ("" | "?", Address::Tcp(host, _)) => host.clone(),
            (host, _) => host.trim_matches(['[', ']']).to_owned(),
        };
        Some(Self { slot, node: Address::Tcp(host, port), once })
    }
}

/// The hash slot of a Redis key: a checksum of its hash tag, or of the key if it has none.
pub(crate) fn hash_slot(name: &[u8]) -> u16 {
    let tag = name.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &name[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    checksum(tag.unwrap_or(name)) % SLOTS
}

/// CRC-16/XMODEM.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |checksum, byte| {
        (0..8).fold(checksum ^ u16::from(*byte) << 8, |checksum: u16, _| {
            let shifted = checksum << 1;
            if checksum & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}

const SLOTS: u16 = 16384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(checksum(b"123456789"), 0x31c3);
        assert_eq!(hash_slot(b"foo"), 12182);
        assert_eq!(hash_slot(b"tenure:{foo}"), 12182);
        assert_eq!(hash_slot(b"tenure:{foo}}"), 12182, "a brace inside the key");
        assert_eq!(hash_slot(b"{}foo"), checksum(b"{}foo") % SLOTS, "an empty tag is none");
    }
}
