use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreClock;

use crate::record::{Nonce, Ttl, Witness};
use crate::{Holder, Instant, ProcessInfo, Timing, Token};

/// Parameters of one acquire.
#[derive(Clone, Debug)]
pub struct AcquireParams {
    /// The contender.
    pub holder: Arc<Holder>,
    /// The durations.
    pub timing: Timing,
    /// Abilities of the store's clock.
    pub store_clock: StoreClock,
    /// Tick of the store's clock; zero if the clock counts writes.
    pub clock_tick: Duration,
    /// The process of this contender, for people who read the record.
    pub process: Option<Arc<ProcessInfo>>,
    /// The witness of this contender on its machine.
    pub witness: Option<Arc<Witness>>,
    /// Hash of the secret of a handle.
    pub secret_hash: Option<[u8; 32]>,
    /// The user's value to write with the grant; `None` keeps the current one.
    pub value: Option<Arc<str>>,
    /// Longest wait.
    pub patience: Patience,
    /// True if the first failed renewal ends the term.
    pub strict: bool,
    /// True if renewals are automatic; false if only on request.
    pub manual: bool,
    /// Minimum time between a read and a read after a hint: none where a read costs almost nothing; on a network, as
    /// long as after a failure.
    pub hint_pause: Duration,
    /// Condition for taking a record of another holder that has run out by its ttl.
    pub heed: Heed,
    /// Shortest time from the beginning of the latest success to a grant, by the store's clock.
    pub once_per: Option<Duration>,
    /// The mode.
    pub mode: AcquireMode,
}

/// Condition for taking a record that has run out by its ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heed {
    /// The ttl alone.
    Ttl,
    /// The ttl and the tree: as long as the witness shows that the work of the former term still runs, the record is
    /// not taken.
    Tree {
        /// For at most this long, counted from when the record was first seen to have run out.
        limit: Option<Duration>,
    },
}

/// Patience of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// None: one read.
    Once,
    /// Until this instant.
    Until(Instant),
    /// Without limit.
    Forever,
}

/// Mode of an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireMode {
    /// Wait until it is free.
    Wait,
    /// Ask the current holder to release, with a reason, and then wait.
    Revoke(Arc<str>),
    /// Take over without waiting, with a reason. Two holders may believe at once, and only a fence tells their writes
    /// apart.
    TakeNow(Arc<str>),
    /// Continue a term that this machine held before, with its ttl.
    ///
    /// Another process may still act under the handle, until its deadline. So nothing is vacated unless the term has
    /// been resumed.
    Resume(TermRef),
    /// Release a term that was held under this handle, and under which no work runs any more.
    Leave(TermRef),
    /// Ask the holder of this term to release, with a reason, and stop once the term is over. Nothing is granted.
    EndTerm {
        /// The term. A later one is left alone.
        term: Nonce,
        /// The reason.
        because: Arc<str>,
    },
}

/// Data for continuing a term in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermRef {
    /// The token of its grant.
    pub token: Token,
    /// The term.
    pub term: Nonce,
    /// The nonce of the last write under it.
    pub nonce: Nonce,
    /// Its ttl, which is fixed for the term.
    pub ttl: Ttl,
    /// Its deadline on this boot's clock.
    pub deadline: Instant,
}
