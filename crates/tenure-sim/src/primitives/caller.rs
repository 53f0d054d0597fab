use tenure_core::machine::Machine;
use tenure_core::record::Nonce;

use super::campaigns::Looking;
use super::entries::EntryCall;
use super::listings::SlotListing;
use super::slots::SlotLook;
use crate::parts::Timer;

/// Something that calls the store: one lease or one operation of an actor.
#[derive(Debug)]
pub(super) struct Caller {
    /// The actor that it belongs to.
    pub(super) actor: usize,
    /// The key that it calls.
    pub(super) key: usize,
    /// Number of the pending call, or of the latest one.
    pub(super) call: u32,
    /// True if that call is a write.
    pub(super) writing: bool,
    pub(super) timer: Timer,
    pub(super) engine: Engine,
}

/// The code under test that makes the calls.
#[derive(Debug)]
pub(super) enum Engine {
    /// A lease.
    Lease(Box<Tenancy>),
    /// An operation on a plain key.
    Entry(Box<EntryCall>),
    /// A single read of a slot.
    Slot(SlotLook),
    /// A listing of a group of slots.
    Listing(SlotListing),
    /// Single reads of a node that observes the leader.
    Look(Looking),
}

/// One lease, from the request to the end.
#[derive(Debug)]
pub(super) struct Tenancy {
    pub(super) machine: Machine,
    /// The term, once it was granted.
    pub(super) term: Option<Nonce>,
    /// The deadline of the belief on the clock of the process; `None` before the grant and after the loss.
    pub(super) deadline: Option<u64>,
    /// True if work runs under the term.
    pub(super) acting: bool,
    /// True if its record was deleted from outside, so that exclusion is not promised.
    pub(super) tainted: bool,
}

impl Caller {
    pub(super) fn new(actor: usize, key: usize, engine: Engine) -> Self {
        Self { actor, key, call: 0, writing: false, timer: Timer::new(), engine }
    }

    /// The lease that it is.
    pub(super) fn tenancy(&mut self) -> Option<&mut Tenancy> {
        match &mut self.engine {
            Engine::Lease(tenancy) => Some(tenancy),
            Engine::Entry(_) | Engine::Slot(_) | Engine::Listing(_) | Engine::Look(_) => None,
        }
    }
}

impl Caller {
    /// The lease that it is.
    pub(super) fn tenancy_ref(&self) -> Option<&Tenancy> {
        match &self.engine {
            Engine::Lease(tenancy) => Some(tenancy),
            Engine::Entry(_) | Engine::Slot(_) | Engine::Listing(_) | Engine::Look(_) => None,
        }
    }
}

impl Tenancy {
    pub(super) fn new(machine: Machine) -> Self {
        Self { machine, term: None, deadline: None, acting: false, tainted: false }
    }
}
