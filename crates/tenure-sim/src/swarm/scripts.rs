use super::Member;
use crate::rng::Rng;

/// What becomes of the commands of scripts. The chances are out of a thousand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripts {
    /// How many commands are killed.
    pub(crate) killed: u32,
    /// How many commands are told to give up.
    pub(crate) cancelled: u32,
    /// How many renewals give up by themselves before the deadline.
    pub(crate) hasty: u32,
    /// How many renewals come with the use of a copy of a handle.
    pub(crate) copied: u32,
    /// How many scripts end without a release.
    pub(crate) forgotten: u32,
    /// How many scripts release late.
    pub(crate) late: u32,
}

impl Scripts {
    /// Makes scripts of some members, in some seeds.
    pub(super) fn draw(rng: &mut Rng, members: &mut [Member]) -> Self {
        if !rng.chance(250) {
            return Self::default();
        }
        for member in members {
            member.script = rng.pick(&[0, 0, 300, 1000]);
        }
        Self {
            killed: rng.pick(&[0, 50, 300]),
            cancelled: rng.pick(&[0, 50, 300]),
            hasty: rng.pick(&[0, 200]),
            copied: rng.pick(&[0, 100, 300]),
            forgotten: rng.pick(&[0, 100]),
            late: rng.pick(&[0, 200]),
        }
    }
}
