use std::collections::VecDeque;

use tenure_core::machine::{Machine, Purpose, TermRef};
use tenure_core::record::Nonce;
use tenure_core::{Belief, Token};

use super::event::LeaseTarget;

/// One lease of a process: the machine under test, and what a driver keeps beside it.
#[derive(Debug)]
pub(super) struct Lease {
    /// Its number, which no other lease of the seed has.
    pub(super) id: u32,
    pub(super) machine: Machine,
    /// The number of the call that is under way, or of the latest one.
    pub(super) call: u32,
    /// Whether that call is a write.
    pub(super) writing: bool,
    /// How the latest write ended, if that was not clear.
    pub(super) doubt: Option<Doubt>,
    /// Until when the machine sleeps, on the clock of its process.
    pub(super) wake: Option<u64>,
    /// When it will be looked at again for that, in true time.
    pub(super) queued: u64,
    pub(super) witness: Option<u32>,
    /// The writes it sent, the latest at the end.
    writes: VecDeque<OwnWrite>,
    /// The record that the latest read showed.
    pub(super) shown: Option<Nonce>,
    /// What the latest confirmed write of its term carries.
    pub(super) confirmed: Nonce,
    pub(super) term: Option<(Nonce, Token)>,
    pub(super) belief_state: BeliefState,
    /// The deadline that the machine told last, on the clock of its process.
    pub(super) deadline: u64,
    /// Whether the keeper is about to extend the belief to that deadline.
    pub(super) extending: bool,
    /// Whether somebody acts under the term.
    pub(super) acting: bool,
    /// Whether what it has was tampered with from outside, so that exclusion is not promised.
    pub(super) tainted: bool,
    /// How many terms of others began while it wanted one.
    pub(super) missed: u64,
    /// How many store calls it made since it was last asked.
    pub(super) calls: u64,
    /// Since when it wants the lease, or has it, in true time.
    pub(super) since: u64,
    pub(super) kind: LeaseKind,
    pub(super) role: Role,
    /// Whether it was denied for a reason that only people can remove.
    pub(super) stuck: bool,
    /// Whether it sent a read, or a revocation, before its grant.
    pub(super) read: bool,
    pub(super) revoked: bool,
    /// Whether its work cannot be stopped, and whether its holder has said so.
    pub(super) unstoppable: bool,
    pub(super) unstoppable_terms: bool,
}

/// What the lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseKind {
    pub(super) manual: bool,
    pub(super) steals: bool,
    pub(super) resumes: bool,
}

/// Who keeps the term.
#[derive(Debug)]
pub(super) enum Role {
    /// The process that has the lease.
    Kept,
    /// Nobody: a script has its handle, and runs commands to renew and to release it.
    Script(Script),
    /// It is the lease of such a command, which ends with it.
    Command(ScriptCommand),
}

/// What a script has.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// The hash of the secret of its handles.
    pub(super) secret: [u8; 32],
    /// The handle that it got last. The machine that got the first is not asked any more.
    pub(super) handle: Option<TermRef>,
    /// The handle before that one, which is used up.
    pub(super) former: Option<TermRef>,
}

/// What a command of a script does.
#[derive(Clone, Debug)]
pub(super) struct ScriptCommand {
    /// The lease of the script.
    pub(super) script: LeaseTarget,
    /// The handle that it uses.
    pub(super) handle: TermRef,
    /// Whether another command uses that handle too, or has used it.
    pub(super) copy: bool,
    /// Whether it began after the deadline of its handle.
    pub(super) late: bool,
}

/// Whether a lease is believed.
#[derive(Debug)]
pub(super) enum BeliefState {
    /// Not granted yet.
    Wanting,
    /// Held, until the word that user and keeper share is latched.
    Held(Belief),
    /// Lost for good.
    Lost,
}

/// Why the outcome of a write was not clear.
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
    /// The greatest token its process had seen and the one that it replaces, if that is smaller.
    pub(super) went_back: Option<(u64, u64)>,
    /// Which of all applied writes it was, if it was applied.
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
            wake: None,
            queued: u64::MAX,
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
            since: now,
            kind,
            role,
            stuck: false,
            read: false,
            revoked: false,
            unstoppable: false,
            unstoppable_terms: false,
        }
    }

    /// Whether it has not been granted yet.
    pub(super) fn wants(&self) -> bool {
        matches!(self.belief_state, BeliefState::Wanting)
    }

    /// Whether it is held, as far as anybody has noticed.
    pub(super) fn holds(&self) -> bool {
        matches!(self.belief_state, BeliefState::Held(_))
    }

    /// Whether it is known to be lost.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.belief_state, BeliefState::Lost)
    }

    /// What the script has whose lease this is, if the term is left to it.
    pub(super) fn script(&self) -> Option<(&Script, &TermRef)> {
        match &self.role {
            Role::Script(script) => script.handle.as_ref().map(|handle| (script, handle)),
            Role::Kept | Role::Command(_) => None,
        }
    }

    /// The command of a script whose lease this is.
    pub(super) fn command(&self) -> Option<&ScriptCommand> {
        match &self.role {
            Role::Command(command) => Some(command),
            Role::Kept | Role::Script(_) => None,
        }
    }

    /// Whether a resumption of it was applied.
    pub(super) fn has_resumed(&self) -> bool {
        self.writes.iter().any(|write| write.purpose == Purpose::Resume && write.applied.is_some())
    }

    /// Remembers a write that it sends.
    pub(super) fn sends(&mut self, write: OwnWrite) {
        if self.writes.len() == WRITES_MAX {
            self.writes.pop_front();
        }
        self.writes.push_back(write);
    }

    /// Its write of this nonce.
    pub(super) fn write(&self, nonce: Nonce) -> Option<&OwnWrite> {
        self.writes.iter().rev().find(|write| write.nonce == nonce)
    }

    /// Its write of this nonce was applied as the `order`-th of all.
    pub(super) fn applied(&mut self, nonce: Nonce, order: u64) {
        if let Some(write) = self.writes.iter_mut().rev().find(|write| write.nonce == nonce) {
            write.applied = Some(order);
        }
    }
}

/// More than the machine itself remembers.
const WRITES_MAX: usize = 40;
