use super::Member;
use crate::rng::Rng;

/// Fate of the commands of scripts. Chances are per thousand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripts {
    /// Commands that are killed.
    pub(crate) killed: u32,
    /// Commands that are cancelled.
    pub(crate) cancelled: u32,
    /// Renewals that give up before the deadline.
    pub(crate) hasty: u32,
    /// Renewals that run beside another command with a copy of a handle.
    pub(crate) copied: u32,
    /// Scripts that end without a release.
    pub(crate) forgotten: u32,
    /// Scripts that release late.
    pub(crate) late: u32,
}

impl Scripts {
    /// Turns some members into scripts, in some seeds.
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
