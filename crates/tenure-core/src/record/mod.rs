//! The record: the value of a key, in format version 1.
//!
//! The format is frozen in `docs/rfcs/0001-record-format.md`. A conditional write always replaces the complete record.
//! A record that this version does not fully understand is never replaced.

mod codec;
mod kind;
mod last_success;
mod nonce;
mod past;
mod state;
mod term_process;
mod ttl;
mod unstoppable;
mod witness;

use std::sync::Arc;

pub use codec::{Foreign, RECORD_MAX, check, decode, encode, try_encode};
pub use kind::Kind;
pub use last_success::LastSuccess;
pub use nonce::Nonce;
pub use past::{End, Past};
pub use state::{Closure, Revocation, State};
pub use term_process::TermProcess;
pub use ttl::Ttl;
pub use unstoppable::Unstoppable;
pub use witness::Witness;

use crate::{Holder, ProcessInfo, Token, WallTime};

/// The value of a key. Cheap to clone: everything large is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Kind of the record: a lease, or a plain key.
    pub kind: Kind,
    /// State of the key.
    pub state: State,
    /// The nonce of the latest grant; zero on a key that was never granted.
    pub term: Nonce,
    /// The token of the latest grant, which is the revision of a plain key. It never goes back.
    pub token: Token,
    /// Time that a held version lasts; absent on a key that was never granted, on a plain key that never runs out, and
    /// on a plain key without an entry.
    pub ttl: Option<Ttl>,
    /// The nonce of this write.
    pub nonce: Nonce,
    /// Number of writes before this one. Never reset.
    pub sequence: u64,
    /// The witness of the holder, on the holder's own machine.
    pub witness: Option<Arc<Witness>>,
    /// Hash of the secret in a handle, or of the owner of a plain key: reading the record is not enough to act for its
    /// holder.
    pub secret_hash: Option<[u8; 32]>,
    /// The holder; absent when vacant.
    pub holder: Option<Arc<Holder>>,
    /// The user's own small value. It stays when a lease is vacant; a plain key has none then.
    pub value: Arc<str>,
    /// The latest ended terms, oldest first.
    pub history: Arc<[Past]>,
    /// Time of the latest grant, by its holder's wall clock. Informational.
    pub granted_at: WallTime,
    /// Time of this write, by the writer's wall clock. Informational.
    pub written_at: WallTime,
    /// States that the work of one term cannot be stopped. It has no meaning for any other term.
    pub unstoppable: Option<Arc<Unstoppable>>,
    /// The latest term whose holder reported that the work was done. It stays until the next one.
    pub last_success: Option<LastSuccess>,
    /// The process of one term, for people. It has no meaning for any other term.
    /// [`holder_process`](Self::holder_process) has that of the present term.
    pub process: Option<Arc<TermProcess>>,
    /// Fields that this version does not know, kept verbatim: name and JSON text.
    pub unknown: Arc<[(String, String)]>,
}

impl Record {
    /// Maximum size of the user's value, in bytes.
    pub const VALUE_MAX: usize = 4096;

    /// Maximum number of past terms in the history.
    pub const HISTORY_MAX: usize = 8;

    /// The vacant record of a key that was never granted. The next token is greater than this one.
    pub fn new(token: Token, nonce: Nonce, written_at: WallTime) -> Self {
        Self {
            kind: Kind::Lease,
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
            last_success: None,
            process: None,
            unknown: Arc::new([]),
        }
    }

    /// The vacant record of a plain key that never had an entry. The next revision is greater than this token.
    pub fn new_key(token: Token, nonce: Nonce, written_at: WallTime) -> Self {
        Self { kind: Kind::Key, ..Self::new(token, nonce, written_at) }
    }

    /// True if the record is a plain key. No lease ever replaces it.
    pub fn is_key(&self) -> bool {
        self.kind == Kind::Key
    }

    /// True if a process may act under this record: it is held, or revoked and not acknowledged.
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Held | State::Revoked(_))
    }

    /// The reason why the holder cannot stop the work under this record, if the holder of this same term says so.
    pub fn cannot_stop(&self) -> Option<&Arc<str>> {
        let said = self.unstoppable.as_ref().filter(|said| said.term == self.term && self.is_held())?;
        Some(&said.because)
    }

    /// The process of the holder, if the holder of this same term describes it. No decision depends on it.
    pub fn holder_process(&self) -> Option<&ProcessInfo> {
        self.present_process().map(|process| &*process.info)
    }

    /// Time between two renewals of the present term, in milliseconds, if its holder says so.
    pub fn renews_ms(&self) -> Option<u64> {
        self.present_process()?.renews_ms
    }

    fn present_process(&self) -> Option<&TermProcess> {
        self.process.as_deref().filter(|process| process.term == self.term && self.is_held())
    }

    /// The nonce of the holder's own last write.
    pub fn holders_nonce(&self) -> Nonce {
        match &self.state {
            State::Revoked(revocation) => revocation.nonce,
            _ => self.nonce,
        }
    }
}
