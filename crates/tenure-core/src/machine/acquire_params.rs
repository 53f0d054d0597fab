use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreClock;

use crate::record::{Nonce, Ttl, Witness};
use crate::{Holder, Instant, Timing, Token};

/// The parameters of one acquire.
#[derive(Clone, Debug)]
pub struct AcquireParams {
    /// Who wants it.
    pub holder: Arc<Holder>,
    /// The durations.
    pub timing: Timing,
    /// What the store's clock is good for.
    pub store_clock: StoreClock,
    /// Where the life of this holder can be seen on its own machine.
    pub witness: Option<Arc<Witness>>,
    /// The hash of the secret of a handle.
    pub secret_hash: Option<[u8; 32]>,
    /// The user's value to write with the grant; the one that is there stays if this is `None`.
    pub value: Option<Arc<str>>,
    /// How long to wait for it.
    pub patience: Patience,
    /// Whether the first failed renewal ends the term.
    pub strict: bool,
    /// Whether renewals come by themselves, or only when asked for.
    pub manual: bool,
    /// How long after the last look a hint is worth another one, at least: nothing where a look costs next to nothing,
    /// and on the network not more looks than failures would get.
    pub hint_pause: Duration,
    /// The condition that counts once the record of another holder has run out by its ttl.
    pub heed: Heed,
    /// How to come by it.
    pub mode: AcquireMode,
}

/// The condition that counts for a contender once a record has run out by its ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heed {
    /// The ttl alone.
    Ttl,
    /// The tree too: as long as its witness shows that the work of the former term goes on, the record is not taken.
    Tree {
        /// For no longer than this, counted from when the record was first seen to have run out.
        limit: Option<Duration>,
    },
}

/// How long a contender waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all: one look.
    Once,
    /// Until this instant.
    Until(Instant),
    /// For ever.
    Forever,
}

/// The mode of an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireMode {
    /// Wait until it is free.
    Wait,
    /// Ask the present holder to let go, saying why, and then wait.
    Revoke(Arc<str>),
    /// Take it from the present holder, saying why, without waiting for it: two may believe at once, and only a fence
    /// tells their writes apart.
    TakeNow(Arc<str>),
    /// Go on with a term that this machine held before, with the ttl that it has.
    ///
    /// Somebody may be acting under the handle meanwhile, until its deadline. So nothing is vacated unless the term has
    /// been resumed.
    Resume(TermRef),
    /// Let go of a term that was held under this handle, for somebody who does not act under it any more.
    Leave(TermRef),
}

/// What is needed to go on with a term in another process.
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
