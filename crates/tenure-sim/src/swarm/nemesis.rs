use super::Weather;
use crate::rng::Rng;
use crate::time::SECOND;

/// Frequency and kinds of strikes.
#[derive(Clone, Debug)]
pub(crate) struct Nemesis {
    /// Mean time between two strikes.
    pub(crate) every: u64,
    /// Relative frequency of each kind of strike.
    weights: [u32; Strike::ALL.len()],
    /// Killed holders that leave a child which keeps the witness and acts, per thousand.
    pub(crate) orphans: u32,
    /// Nonces that cannot be listed, per thousand.
    pub(crate) unlisted: u32,
    /// Shortest time between two pauses of one process, in its ttls.
    pub(crate) pause_apart: u64,
    /// Longest pause, in hundredths of a ttl.
    pub(crate) pause_most: u64,
}

/// One kind of strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    Pause,
    Crash,
    Reboot,
    WallJump,
    Freeze,
    Partition,
    Storm,
    Delete,
    Restore,
    Foreign,
    StepStoreClock,
    CopyWitness,
}

impl Strike {
    pub(crate) const ALL: &[Self] = &[
        Self::Pause,
        Self::Crash,
        Self::Reboot,
        Self::WallJump,
        Self::Freeze,
        Self::Partition,
        Self::Storm,
        Self::Delete,
        Self::Restore,
        Self::Foreign,
        Self::StepStoreClock,
        Self::CopyWitness,
    ];

    /// Relative frequency where it is enabled.
    fn weight(self) -> u32 {
        match self {
            Self::Pause => 40,
            Self::Crash => 20,
            Self::Reboot => 2,
            Self::WallJump => 8,
            Self::Freeze => 8,
            Self::Partition => 12,
            Self::Storm => 4,
            Self::Delete | Self::Restore => 2,
            Self::Foreign => 1,
            Self::StepStoreClock => 2,
            Self::CopyWitness => 8,
        }
    }

    /// True if it changes the record from outside.
    fn tampers(self) -> bool {
        matches!(self, Self::Delete | Self::Restore | Self::Foreign)
    }
}

impl Nemesis {
    pub(crate) fn draw(rng: &mut Rng, weather: Weather) -> Self {
        let mut nemesis = Self {
            every: rng.pick(&[4, 10, 25, 100]) * SECOND,
            weights: [0; Strike::ALL.len()],
            orphans: rng.pick(&[0, 200]),
            unlisted: rng.pick(&[0, 0, 50]),
            pause_apart: 0,
            pause_most: rng.pick(&[150, 300, 1000]),
        };
        let tampered = rng.chance(300);
        for strike in Strike::ALL.iter().copied() {
            let dropped = rng.chance(250);
            let allowed = (tampered || !strike.tampers())
                && (weather == Weather::BrokenClocks || strike != Strike::Freeze);
            nemesis.set(strike, if dropped || !allowed { 0 } else { strike.weight() });
        }
        nemesis
    }

    /// Restricts strikes to those that no holder may notice: short pauses with long intervals, and crashes, which end a
    /// term silently. Jumps of the wall clock and copied witnesses stay, too.
    pub(crate) fn calm(&mut self) {
        for strike in Strike::ALL.iter().copied() {
            if !matches!(strike, Strike::Pause | Strike::Crash | Strike::WallJump | Strike::CopyWitness) {
                self.set(strike, 0);
            }
        }
        self.pause_apart = 2;
        self.pause_most = 20;
        self.orphans = 0;
    }

    /// Sets the relative frequency of a strike.
    pub(crate) fn set(&mut self, strike: Strike, weight: u32) {
        self.weights[strike as usize] = weight;
    }

    /// Draws the next strike; `None` if all are disabled.
    pub(crate) fn choose(&self, rng: &mut Rng) -> Option<Strike> {
        let total: u32 = self.weights.iter().sum();
        let mut at = rng.below(u64::from(total)) as u32;
        for (strike, weight) in Strike::ALL.iter().zip(self.weights) {
            if at < weight {
                return Some(*strike);
            }
            at -= weight;
        }
        None
    }
}
