use tenure_core::election::ElectionRules;
use tenure_core::keys::KeyRules;
use tenure_core::machine::{Rules, Standard};
use tenure_core::set::SetRules;
use tenure_core::slots::SlotRules;
use tenure_store::{QuarantineRules, StandardQuarantine};

use crate::primitives::PrimitivesWorld;
use crate::world::World;
use crate::{Focus, Invariant, Mutant, Tally, Violation};

/// One history to simulate, and its rules.
#[derive(Clone, Debug)]
pub struct Seed {
    pub(crate) number: u64,
    pub(crate) minutes: u64,
    pub(crate) focus: Focus,
    pub(crate) readable: bool,
    pub(crate) rules: &'static dyn Rules,
    pub(crate) election: &'static dyn ElectionRules,
    pub(crate) sets: &'static dyn SetRules,
    pub(crate) keys: &'static dyn KeyRules,
    pub(crate) slots: &'static dyn SlotRules,
    pub(crate) quarantine: &'static dyn QuarantineRules,
    pub(crate) bug: Bug,
    pub(crate) wanted: Option<Invariant>,
}

/// A defect of the world, for the mutants that do not replace a rule of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bug {
    /// No defect.
    #[default]
    None,
    /// The store applies every write.
    StoreIgnoresConditions,
    /// The resource accepts every token.
    NoFence,
    /// The keeper extends a belief that was latched as lost.
    RevivesBelief,
    /// The store is not checked at connect.
    ConnectsUnchecked,
    /// A contender tries again at once after its release.
    NeverRests,
}

/// Result of a seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first invariant that was broken.
    pub violation: Option<Violation>,
    /// Counts of everything that happened.
    pub tally: Tally,
    /// Hash of the complete trace.
    pub hash: u64,
    /// The drawn configuration; empty unless the seed is readable or an invariant was broken.
    pub config: String,
    /// The trace as text; empty unless the seed is readable.
    pub lines: Vec<String>,
}

impl Seed {
    /// Default number of minutes.
    pub const MINUTES: u64 = 60;

    /// The seed with this number, under the standard rules.
    pub fn new(number: u64) -> Self {
        Self {
            number,
            minutes: Self::MINUTES,
            focus: Focus::None,
            readable: false,
            rules: &Standard,
            election: &Standard,
            sets: &Standard,
            keys: &Standard,
            slots: &Standard,
            quarantine: &StandardQuarantine,
            bug: Bug::None,
            wanted: None,
        }
    }

    /// Sets the number of simulated minutes during which faults strike.
    pub fn minutes(self, minutes: u64) -> Self {
        Self { minutes, ..self }
    }

    /// Sets the focus.
    pub fn focus(self, focus: Focus) -> Self {
        Self { focus, ..self }
    }

    /// Keeps the trace as text.
    pub fn readable(self) -> Self {
        Self { readable: true, ..self }
    }

    /// Applies a mutant, and looks only for the invariant that must catch it.
    pub fn with(mut self, mutant: &Mutant) -> Self {
        mutant.change.apply(&mut self);
        self.focus = mutant.focus;
        self.wanted = Some(mutant.caught_by);
        self
    }

    /// Runs the seed.
    pub fn run(&self) -> Outcome {
        if self.focus.is_of_primitives() {
            return PrimitivesWorld::new(self).run();
        }
        World::new(self).run()
    }
}
