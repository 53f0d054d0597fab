//! The records of plain keys, one function per write.

use std::sync::Arc;

use super::KeyOwner;
use crate::machine::Ambient;
use crate::machine::writes::next_sequence;
use crate::record::{Kind, Nonce, Record, State, Ttl};
use crate::{Token, WallTime};

/// The record of a new entry over `old`.
pub(super) fn entry(
    old: &Record,
    nonce: Nonce,
    revision: Token,
    (value, ttl): (&Arc<str>, Option<Ttl>),
    owner: &KeyOwner,
    ambient: &Ambient,
) -> Record {
    Record {
        kind: Kind::Key,
        state: State::Held,
        term: nonce,
        token: revision,
        ttl,
        nonce,
        sequence: next_sequence(old),
        secret_hash: Some(owner.secret_hash),
        holder: Some(Arc::clone(&owner.holder)),
        value: Arc::clone(value),
        granted_at: ambient.wall,
        written_at: ambient.wall,
        ..old.clone()
    }
}

/// The same entry, written anew.
pub(super) fn renewed(old: &Record, nonce: Nonce, revision: Token, wall: WallTime) -> Record {
    Record { token: revision, nonce, sequence: next_sequence(old), written_at: wall, ..old.clone() }
}

/// The vacant record that an entry leaves behind. It keeps the revision.
pub(super) fn released(old: &Record, nonce: Nonce, revision: Token, wall: WallTime) -> Record {
    Record {
        state: State::Vacant,
        token: revision,
        ttl: None,
        nonce,
        sequence: next_sequence(old),
        secret_hash: None,
        holder: None,
        value: "".into(),
        written_at: wall,
        ..old.clone()
    }
}
