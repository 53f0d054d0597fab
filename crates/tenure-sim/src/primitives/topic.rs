use crate::Focus;
use crate::rng::Rng;

/// A primitive that a seed simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Elections,
    Sets,
    Keys,
    Slots,
    Jobs,
}

impl Topic {
    /// Those of which every mixture has at least one.
    const ALL: &[Self] = &[Self::Elections, Self::Sets, Self::Keys, Self::Slots];

    /// The primitives of a seed: one or several of them without a focus.
    pub(super) fn of(focus: Focus, rng: &mut Rng) -> Vec<Self> {
        match focus {
            Focus::ElectedTwins | Focus::ElectedInTurn => vec![Self::Elections],
            Focus::Sets => vec![Self::Sets],
            Focus::Keys => vec![Self::Keys],
            Focus::Slots => vec![Self::Slots],
            Focus::Jobs => vec![Self::Jobs],
            _ => {
                let first = rng.pick(Self::ALL);
                let others = Self::ALL.iter().copied().filter(|topic| *topic != first);
                let others: Vec<Self> = others.filter(|_| rng.chance(300)).collect();
                let jobs = rng.aside().chance(200).then_some(Self::Jobs);
                [vec![first], others, jobs.into_iter().collect()].concat()
            }
        }
    }
}
