//! Several leases at once, all or nothing, as a state machine without I/O, clock or randomness.
//!
//! A [`SetMachine`] acquires ordinary leases one after the other in a fixed order, and keeps each one while it waits for
//! the next:
//!
//! ```text
//!            Start             the last is granted          lost, released
//!   ───────────────▶  Seeking  ───────────────────▶  Held  ────────────────▶  Leaving  ──▶  Ended
//!                      │   ▲
//!     denied, lost,    │   │ begins again after a loss,
//!     cancelled        ▼   │ while the limit allows
//!                    Withdrawing  ──▶  Ended (denied)
//! ```
//!
//! Its decisions are in [`SetRules`], one named function each. The same code runs in the simulation and in the library.

mod effect;
mod input;
mod rules;

pub use effect::{SetDenied, SetEffect, SetEvent};
pub use input::{SetAmbient, SetInput};
pub use rules::SetRules;

use std::collections::BTreeSet;

use tenure_store::Key;

use crate::machine::{Patience, Standard};
use crate::{Error, ErrorKind};

/// Several leases, from the request to the end.
#[derive(Debug)]
pub struct SetMachine {
    rules: &'static dyn SetRules,
    keys: Vec<Key>,
    patience: Patience,
    members: Vec<MemberState>,
    stage: SetStage,
}

/// State of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    /// Neither requested nor held.
    Idle,
    /// Requested.
    Asked,
    /// Granted, and not reported lost.
    Granted,
    /// Its release, or the cancellation of its request, has not ended yet.
    Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SetStage {
    /// Nothing was requested yet.
    New,
    /// The leases before `next` are granted, and `next` is requested.
    Seeking { next: usize },
    /// What was granted is being released.
    Withdrawing(AfterWithdrawal),
    /// All leases are held.
    Held,
    /// The belief has ended, and the remaining leases are being released.
    Leaving,
    /// Nothing is requested any more.
    Ended,
}

/// The step after a withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterWithdrawal {
    /// Begin again, because this lease was lost.
    BeginAgain { lost: usize },
    /// Report the denial.
    Deny(SetDenied),
}

impl SetMachine {
    /// Most leases of one set: each is acquired by itself, and renewed by itself.
    pub const MEMBERS_MAX: usize = 64;

    /// A machine for the leases of these keys. It does nothing before [`SetInput::Start`].
    ///
    /// Fails if there is no key, a key occurs twice, or there are more than [`MEMBERS_MAX`](Self::MEMBERS_MAX).
    pub fn new(keys: Vec<Key>, patience: Patience) -> Result<Self, Error> {
        Self::with_rules(keys, patience, &Standard)
    }

    /// A machine under other rules, for the simulation.
    pub fn with_rules(
        mut keys: Vec<Key>,
        patience: Patience,
        rules: &'static dyn SetRules,
    ) -> Result<Self, Error> {
        let invalid = |sentence: String| Err(Error::new(ErrorKind::Invalid, sentence));
        if keys.is_empty() {
            return invalid("a set of leases has at least one key: name one".to_owned());
        }
        if keys.len() > Self::MEMBERS_MAX {
            return invalid(format!("a set has at most {} leases, not {}", Self::MEMBERS_MAX, keys.len()));
        }
        let mut different = BTreeSet::new();
        if let Some(twice) = keys.iter().find(|key| !different.insert(*key)) {
            return invalid(format!("{twice} occurs twice in a set of leases: name each key once"));
        }
        rules.order(&mut keys);
        let members = vec![MemberState::Idle; keys.len()];
        Ok(Self { rules, keys, patience, members, stage: SetStage::New })
    }

    /// The keys, in the order in which they are acquired.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// True while the set is held: it was granted, and the machine knows of no loss. The belief also needs the clock,
    /// see [`believes`](Self::believes).
    pub fn is_held(&self) -> bool {
        self.stage == SetStage::Held
    }

    /// True if the set is held at this instant: it was granted, and the rules believe in it.
    pub fn believes(&self, held: &[bool]) -> bool {
        self.is_held() && self.rules.believes(held)
    }

    /// True if the machine has ended: it requests nothing.
    pub fn is_ended(&self) -> bool {
        self.stage == SetStage::Ended
    }

    /// Handles an input and appends the resulting effects.
    pub fn step(&mut self, ambient: &SetAmbient<'_>, input: SetInput, effects: &mut Vec<SetEffect>) {
        match input {
            SetInput::Start if self.stage == SetStage::New => self.ask(0, effects),
            SetInput::Start => {}
            SetInput::Granted { member } => self.granted(ambient, member, effects),
            SetInput::Denied { member } => self.denied(ambient, member, effects),
            SetInput::Lost { member } => self.lost(ambient, member, effects),
            SetInput::Left { member } if self.members[member] == MemberState::Leaving => {
                self.members[member] = MemberState::Idle;
                self.maybe_left(ambient, effects);
            }
            // The end of a lease that was lost: nothing waits for it.
            SetInput::Left { .. } => {}
            SetInput::Release => self.release(ambient, effects),
        }
    }

    fn ask(&mut self, next: usize, effects: &mut Vec<SetEffect>) {
        self.stage = SetStage::Seeking { next };
        self.members[next] = MemberState::Asked;
        effects.push(SetEffect::Acquire { member: next, patience: self.patience });
    }

    fn granted(&mut self, ambient: &SetAmbient<'_>, member: usize, effects: &mut Vec<SetEffect>) {
        let SetStage::Seeking { next } = self.stage else {
            // The request was cancelled, and its grant landed all the same: its release was requested already.
            return;
        };
        if member != next {
            return;
        }
        self.members[member] = MemberState::Granted;
        let granted = &ambient.held[..=member];
        if !self.rules.believes(granted) {
            // A lease ran out, and its loss was not reported yet.
            let lost = granted.iter().position(|held| !held).unwrap_or(member);
            self.members[lost] = MemberState::Idle;
            return self.withdraw(ambient, self.after_loss(ambient, lost), effects);
        }
        if member + 1 < self.keys.len() {
            return self.ask(member + 1, effects);
        }
        self.stage = SetStage::Held;
        effects.push(SetEffect::Tell(SetEvent::Granted));
    }

    fn denied(&mut self, ambient: &SetAmbient<'_>, member: usize, effects: &mut Vec<SetEffect>) {
        self.members[member] = MemberState::Idle;
        match self.stage {
            SetStage::Seeking { next } if member == next => {
                self.withdraw(ambient, AfterWithdrawal::Deny(SetDenied::Member(member)), effects);
            }
            _ => self.maybe_left(ambient, effects),
        }
    }

    fn lost(&mut self, ambient: &SetAmbient<'_>, member: usize, effects: &mut Vec<SetEffect>) {
        if self.members[member] != MemberState::Granted {
            // A release is under way, and its end is still to come.
            return;
        }
        self.members[member] = MemberState::Idle;
        match self.stage {
            SetStage::Seeking { .. } => {
                self.withdraw(ambient, self.after_loss(ambient, member), effects);
            }
            SetStage::Held if self.rules.ends_with_first() => {
                self.stage = SetStage::Leaving;
                effects.push(SetEffect::Tell(SetEvent::Lost { member }));
                if self.rules.releases_others() {
                    self.release_members(effects);
                }
                self.maybe_left(ambient, effects);
            }
            _ => self.maybe_left(ambient, effects),
        }
    }

    fn after_loss(&self, ambient: &SetAmbient<'_>, lost: usize) -> AfterWithdrawal {
        if self.rules.begins_again(self.patience, ambient.now) {
            AfterWithdrawal::BeginAgain { lost }
        } else {
            AfterWithdrawal::Deny(SetDenied::MemberLost(lost))
        }
    }

    fn release(&mut self, ambient: &SetAmbient<'_>, effects: &mut Vec<SetEffect>) {
        let cancelled = AfterWithdrawal::Deny(SetDenied::Cancelled);
        match self.stage {
            SetStage::New | SetStage::Seeking { .. } => self.withdraw(ambient, cancelled, effects),
            SetStage::Withdrawing(_) => self.stage = SetStage::Withdrawing(cancelled),
            SetStage::Held => {
                self.stage = SetStage::Leaving;
                self.release_members(effects);
                self.maybe_left(ambient, effects);
            }
            SetStage::Leaving | SetStage::Ended => {}
        }
    }

    /// Releases what was granted, and cancels what was requested.
    fn withdraw(&mut self, ambient: &SetAmbient<'_>, then: AfterWithdrawal, effects: &mut Vec<SetEffect>) {
        self.stage = SetStage::Withdrawing(then);
        if !(matches!(then, AfterWithdrawal::Deny(SetDenied::Member(_))) && self.rules.keeps_part()) {
            self.release_members(effects);
        }
        self.maybe_left(ambient, effects);
    }

    /// In the reverse order: a contender that waits for the first lease then finds the others free.
    fn release_members(&mut self, effects: &mut Vec<SetEffect>) {
        for (member, state) in self.members.iter_mut().enumerate().rev() {
            if matches!(state, MemberState::Asked | MemberState::Granted) {
                *state = MemberState::Leaving;
                effects.push(SetEffect::Release { member });
            }
        }
    }

    /// Continues once no release is under way.
    fn maybe_left(&mut self, ambient: &SetAmbient<'_>, effects: &mut Vec<SetEffect>) {
        if self.members.contains(&MemberState::Leaving) {
            return;
        }
        match self.stage {
            SetStage::Withdrawing(AfterWithdrawal::BeginAgain { lost }) => {
                match self.after_loss(ambient, lost) {
                    AfterWithdrawal::BeginAgain { .. } => self.ask(0, effects),
                    AfterWithdrawal::Deny(denied) => self.deny(denied, effects),
                }
            }
            SetStage::Withdrawing(AfterWithdrawal::Deny(denied)) => self.deny(denied, effects),
            SetStage::Leaving => {
                self.stage = SetStage::Ended;
                effects.push(SetEffect::Tell(SetEvent::Left));
            }
            SetStage::New | SetStage::Seeking { .. } | SetStage::Held | SetStage::Ended => {}
        }
    }

    fn deny(&mut self, denied: SetDenied, effects: &mut Vec<SetEffect>) {
        self.stage = SetStage::Ended;
        effects.push(SetEffect::Tell(SetEvent::Denied(denied)));
    }
}
