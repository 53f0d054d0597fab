//! What a key holds: the record, version 1.
//!
//! The format is frozen in `docs/rfcs/0001-record-format.md`. Records are only ever replaced whole, by a conditional
//! write, and a record that is not fully understood is never replaced at all.

mod codec;
mod nonce;
mod past;
mod state;
mod ttl;
mod unstoppable;
mod witness;

use std::sync::Arc;

pub use codec::{Foreign, RECORD_MAX, check, decode, encode, try_encode};
pub use nonce::Nonce;
pub use past::{End, Past};
pub use state::{Closure, Revocation, State};
pub use ttl::Ttl;
pub use unstoppable::Unstoppable;
pub use witness::Witness;

use crate::{Holder, Token, WallTime};

/// What a key holds. Cheap to clone: everything of size is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Whether the key is held.
    pub state: State,
    /// The nonce of the latest grant; zero on a key that was never granted.
    pub term: Nonce,
    /// The token of the latest grant. It never goes back.
    pub token: Token,
    /// How long a held version lasts; absent on a key that was never granted.
    pub ttl: Option<Ttl>,
    /// The nonce of this very write.
    pub nonce: Nonce,
    /// How many writes came before this one. Never reset.
    pub sequence: u64,
    /// Where the life of the holder can be seen on its own machine.
    pub witness: Option<Arc<Witness>>,
    /// The hash of the secret that a handle carries, so that reading the record is not enough to act for its holder.
    pub secret_hash: Option<[u8; 32]>,
    /// Who holds it; gone when vacant.
    pub holder: Option<Arc<Holder>>,
    /// The user's own small value; stays when vacant.
    pub value: Arc<str>,
    /// The latest terms that are over, oldest first.
    pub history: Arc<[Past]>,
    /// When the latest grant was made, by its holder's wall clock. For people.
    pub granted_at: WallTime,
    /// When this was written, by the writer's wall clock. For people.
    pub written_at: WallTime,
    /// Says of one term that its work cannot be stopped. Of another term it means nothing.
    pub unstoppable: Option<Arc<Unstoppable>>,
    /// Fields this version does not know, kept verbatim: name and JSON text.
    pub unknown: Arc<[(String, String)]>,
}

impl Record {
    /// The largest user value, in bytes.
    pub const VALUE_MAX: usize = 4096;

    /// How many past terms the history keeps.
    pub const HISTORY_MAX: usize = 8;

    /// The vacant record of a key that was never granted. The next token is greater than this one.
    pub fn new(token: Token, nonce: Nonce, written_at: WallTime) -> Self {
        Self {
            state: State::Vacant,
            term: Nonce::ZERO,
            token,
            ttl: None,
            nonce,
            sequence: 0,
            witness: None,
            secret_hash: None,
            holder: None,
            value: "".into(),
            history: Arc::new([]),
            granted_at: WallTime::default(),
            written_at,
            unstoppable: None,
            unknown: Arc::new([]),
        }
    }

    /// Whether somebody may be acting under this record: it is held, or revoked and not acknowledged.
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Held | State::Revoked(_))
    }

    /// The reason why the holder cannot stop the work under this record, if the holder of this very term says so.
    pub fn cannot_stop(&self) -> Option<&Arc<str>> {
        let said = self.unstoppable.as_ref().filter(|said| said.term == self.term && self.is_held())?;
        Some(&said.because)
    }

    /// The nonce of the holder's own last write.
    pub fn holders_nonce(&self) -> Nonce {
        match &self.state {
            State::Revoked(revocation) => revocation.nonce,
            _ => self.nonce,
        }
    }
}
