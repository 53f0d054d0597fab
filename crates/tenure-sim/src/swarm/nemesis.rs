use super::Weather;
use crate::rng::Rng;
use crate::time::SECOND;

/// Who strikes, how often, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Nemesis {
    /// The mean time between two strikes.
    pub(crate) every: u64,
    /// What it strikes with, and how often in relation to the others.
    weights: [u32; Strike::ALL.len()],
    /// How many of a thousand killed holders leave a child that keeps the witness and acts.
    pub(crate) orphans: u32,
    /// How many of a thousand nonces cannot be listed.
    pub(crate) unlisted: u32,
    /// The shortest time between two pauses of one process, in its ttls, and the longest pause in hundredths of one.
    pub(crate) pause_apart: u64,
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

    /// How often it strikes in relation to the others, where it does at all.
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

    /// Whether it changes the record from outside.
    fn tampers(self) -> bool {
        matches!(self, Self::Delete | Self::Restore | Self::Foreign)
    }
}

impl Nemesis {
    pub(super) fn draw(rng: &mut Rng, weather: Weather) -> Self {
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

    /// Strikes that no holder may notice: short pauses that are far apart, and crashes, which end a term in silence.
    pub(super) fn calm(&mut self) {
        for strike in Strike::ALL.iter().copied() {
            if !matches!(strike, Strike::Pause | Strike::Crash | Strike::WallJump | Strike::CopyWitness) {
                self.set(strike, 0);
            }
        }
        self.pause_apart = 2;
        self.pause_most = 20;
        self.orphans = 0;
    }

    /// Sets how often it strikes with this in relation to the others.
    pub(super) fn set(&mut self, strike: Strike, weight: u32) {
        self.weights[strike as usize] = weight;
    }

    /// What it strikes with next; `None` if it never strikes.
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
