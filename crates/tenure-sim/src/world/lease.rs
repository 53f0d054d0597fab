use std::collections::VecDeque;

use tenure_core::machine::{Machine, Purpose, TermRef};
use tenure_core::record::Nonce;
use tenure_core::{Belief, Token};

use super::event::LeaseTarget;
use crate::parts::Timer;

/// One lease of a process: the machine under test, and the driver's state for it.
#[derive(Debug)]
pub(super) struct Lease {
    /// Number of the lease, unique in the seed.
    pub(super) id: u32,
    pub(super) machine: Machine,
    /// Number of the pending call, or of the latest one.
    pub(super) call: u32,
    /// True if that call is a write.
    pub(super) writing: bool,
    /// Reason for which the outcome of the latest write is in doubt, if it is.
    pub(super) doubt: Option<Doubt>,
    pub(super) timer: Timer,
    pub(super) witness: Option<u32>,
    /// The writes that it sent, the latest at the end.
    writes: VecDeque<OwnWrite>,
    /// Nonce of the record in the latest read.
    pub(super) shown: Option<Nonce>,
    /// Nonce of the latest confirmed write of its term.
    pub(super) confirmed: Nonce,
    pub(super) term: Option<(Nonce, Token)>,
    pub(super) belief_state: BeliefState,
    /// The last deadline that the machine reported, on the clock of its process.
    pub(super) deadline: u64,
    /// True if the keeper is about to extend the belief to that deadline.
    pub(super) extending: bool,
    /// True if work runs under the term.
    pub(super) acting: bool,
    /// True if its record was tampered with from outside, so that exclusion is not promised.
    pub(super) tainted: bool,
    /// Number of terms of others that began while it waited.
    pub(super) missed: u64,
    /// Number of store calls since the counter was last reset.
    pub(super) calls: u64,
    /// Number of store calls as a holder since its latest confirmed write.
    pub(super) unconfirmed_calls: u64,
    /// True time since which it wants the lease, or holds it.
    pub(super) since: u64,
    pub(super) kind: LeaseKind,
    pub(super) role: Role,
    /// True if it was denied for a reason that only an operator can remove.
    pub(super) stuck: bool,
    /// True if it sent a read before its grant.
    pub(super) read: bool,
    /// True if it sent a revocation before its grant.
    pub(super) revoked: bool,
    /// True if its work cannot be stopped.
    pub(super) unstoppable: bool,
    /// True if its holder has said so.
    pub(super) said_unstoppable: bool,
}

/// Options with which the lease was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseKind {
    pub(super) manual: bool,
    pub(super) steals: bool,
    pub(super) resumes: bool,
}

/// Owner of the term.
#[derive(Debug)]
pub(super) enum Role {
    /// The process that has the lease.
    Kept,
    /// A script that has the handle, and runs commands to renew and to release it. No process keeps the term.
    Script(Script),
    /// A command of a script. The lease ends with the command.
    Command(ScriptCommand),
}

/// State of a script.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Hash of the secret of its handles.
    pub(super) secret: [u8; 32],
    /// Its latest handle. The machine that acquired the first one is no longer used.
    pub(super) handle: Option<TermRef>,
    /// The handle before that one, which is used up.
    pub(super) former: Option<TermRef>,
}

/// State of a command of a script.
#[derive(Clone, Debug)]
pub(super) struct ScriptCommand {
    /// The lease of the script.
    pub(super) script: LeaseTarget,
    /// The handle that it uses.
    pub(super) handle: TermRef,
    /// True if another command uses that handle, too, or has used it.
    pub(super) copy: bool,
    /// True if it began after the deadline of its handle.
    pub(super) late: bool,
}

/// Belief of a lease.
#[derive(Debug)]
pub(super) enum BeliefState {
    /// Not granted yet.
    Wanting,
    /// Held, until the word that user and keeper share is latched.
    Held(Belief),
    /// Lost for good.
    Lost,
}

/// Reason for which the outcome of a write is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    Timeout,
    Conflict,
}

/// A write that a lease sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnWrite {
    pub(super) nonce: Nonce,
    pub(super) purpose: Purpose,
    pub(super) sent: u64,
    /// The greatest token that its process had seen, and the replaced token if that is smaller.
    pub(super) went_back: Option<(u64, u64)>,
    /// Its number among all applied writes, if it was applied.
    pub(super) applied: Option<u64>,
}

impl Lease {
    pub(super) fn new(
        id: u32,
        machine: Machine,
        witness: Option<u32>,
        kind: LeaseKind,
        role: Role,
        now: u64,
    ) -> Self {
        Self {
            id,
            machine,
            call: 0,
            writing: false,
            doubt: None,
            timer: Timer::new(),
            witness,
            writes: VecDeque::with_capacity(WRITES_MAX),
            shown: None,
            confirmed: Nonce::ZERO,
            term: None,
            belief_state: BeliefState::Wanting,
            deadline: 0,
            extending: false,
            acting: false,
            tainted: false,
            missed: 0,
            calls: 0,
            unconfirmed_calls: 0,
            since: now,
            kind,
            role,
            stuck: false,
            read: false,
            revoked: false,
            unstoppable: false,
            said_unstoppable: false,
        }
    }

    /// True if it has not been granted yet.
    pub(super) fn wants(&self) -> bool {
        matches!(self.belief_state, BeliefState::Wanting)
    }

    /// True if it is held, or its loss was not noticed yet.
    pub(super) fn holds(&self) -> bool {
        matches!(self.belief_state, BeliefState::Held(_))
    }

    /// True if it is known to be lost.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.belief_state, BeliefState::Lost)
    }

    /// The script that owns this lease, and its latest handle, if the term is left to it.
    pub(super) fn script(&self) -> Option<(&Script, &TermRef)> {
        match &self.role {
            Role::Script(script) => script.handle.as_ref().map(|handle| (script, handle)),
            Role::Kept | Role::Command(_) => None,
        }
    }

    /// The command that owns this lease.
    pub(super) fn command(&self) -> Option<&ScriptCommand> {
        match &self.role {
            Role::Command(command) => Some(command),
            Role::Kept | Role::Script(_) => None,
        }
    }

    /// True if a resume of it was applied.
    pub(super) fn has_resumed(&self) -> bool {
        self.writes.iter().any(|write| write.purpose == Purpose::Resume && write.applied.is_some())
    }

    /// Stores a write that it sends.
    pub(super) fn sends(&mut self, write: OwnWrite) {
        if self.writes.len() == WRITES_MAX {
            self.writes.pop_front();
        }
        self.writes.push_back(write);
    }

    /// Its write with this nonce.
    pub(super) fn write(&self, nonce: Nonce) -> Option<&OwnWrite> {
        self.writes.iter().rev().find(|write| write.nonce == nonce)
    }

    /// Its write with this nonce was applied as the `order`-th of all writes.
    pub(super) fn applied(&mut self, nonce: Nonce, order: u64) {
        if let Some(write) = self.writes.iter_mut().rev().find(|write| write.nonce == nonce) {
            write.applied = Some(order);
        }
    }
}

/// More than the machine itself keeps.
const WRITES_MAX: usize = 40;
