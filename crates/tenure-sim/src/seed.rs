use tenure_core::machine::{Rules, Standard};

use crate::world::World;
use crate::{Focus, Invariant, Mutant, Tally, Violation};

/// One history to live through, and under which rules.
#[derive(Clone, Debug)]
pub struct Seed {
    pub(crate) number: u64,
    pub(crate) minutes: u64,
    pub(crate) focus: Focus,
    pub(crate) readable: bool,
    pub(crate) rules: &'static dyn Rules,
    pub(crate) bug: Bug,
    pub(crate) wanted: Option<Invariant>,
}

/// What is wrong with the world, for the mutants that are not a rule of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Nothing.
    #[default]
    None,
    /// The store writes whatever it is told.
    StoreIgnoresConditions,
    /// The resource takes every token.
    NoFence,
    /// The keeper extends a belief that was latched as lost.
    RevivesBelief,
    /// Nobody checks the store when it is connected.
    ConnectsUnchecked,
    /// Whoever lets go tries again at once.
    NeverRests,
}

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first invariant that did not hold.
    pub violation: Option<Violation>,
    /// What happened, counted.
    pub tally: Tally,
    /// The hash of everything that happened.
    pub hash: u64,
    /// The configuration that was drawn, if somebody has to read it.
    pub config: String,
    /// What happened, to read, if that was asked for.
    pub lines: Vec<String>,
}

impl Seed {
    /// How many minutes a seed lasts unless said.
    pub const MINUTES: u64 = 60;

    /// This seed, under the rules that are right.
    pub fn new(number: u64) -> Self {
        Self {
            number,
            minutes: Self::MINUTES,
            focus: Focus::None,
            readable: false,
            rules: &Standard,
            bug: Bug::None,
            wanted: None,
        }
    }

    /// The same seed, with faults for so many simulated minutes.
    pub fn minutes(self, minutes: u64) -> Self {
        Self { minutes, ..self }
    }

    /// The same seed, spending its time in one corner of the world.
    pub fn focus(self, focus: Focus) -> Self {
        Self { focus, ..self }
    }

    /// The same seed, with a trace to read.
    pub fn readable(self) -> Self {
        Self { readable: true, ..self }
    }

    /// The same seed with one thing wrong, looking only for the invariant that must notice it.
    pub fn with(mut self, mutant: &Mutant) -> Self {
        mutant.change.apply(&mut self);
        self.focus = mutant.focus;
        self.wanted = Some(mutant.caught_by);
        self
    }

    /// Lives through it.
    pub fn run(&self) -> Outcome {
        World::new(self).run()
    }
}
