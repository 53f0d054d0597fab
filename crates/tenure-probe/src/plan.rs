use std::ops::RangeInclusive;

/// How much of everything a probe does. Each number has bounds: a probe of a cloud costs money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a plan does nothing until it is given to a probe"]
pub struct Plan {
    pub(crate) racers: usize,
    pub(crate) rounds: usize,
    pub(crate) samples: usize,
}

/// A number that makes no sense for a probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} are {least} to {most}, not {number}")]
pub struct PlanError {
    what: &'static str,
    number: usize,
    least: usize,
    most: usize,
}

impl Plan {
    /// How many racers there may be.
    const RACERS: RangeInclusive<usize> = 2..=512;
    /// How many rounds there may be.
    const ROUNDS: RangeInclusive<usize> = 1..=10_000;
    /// How many samples there may be.
    const SAMPLES: RangeInclusive<usize> = 10..=10_000;

    /// How many racers want the same key at the same time. 32 unless told.
    pub fn racers(mut self, racers: usize) -> Result<Self, PlanError> {
        self.racers = within("racers", racers, &Self::RACERS)?;
        Ok(self)
    }

    /// How many rounds each kind of race has. 10 unless told: a server that is almost atomic loses one in many.
    pub fn rounds(mut self, rounds: usize) -> Result<Self, PlanError> {
        self.rounds = within("rounds", rounds, &Self::ROUNDS)?;
        Ok(self)
    }

    /// How many calls of each kind are timed. 100 unless told: with fewer, the 99th percentile is the slowest of them.
    pub fn samples(mut self, samples: usize) -> Result<Self, PlanError> {
        self.samples = within("samples", samples, &Self::SAMPLES)?;
        Ok(self)
    }

    /// Over how many connections racers are spread.
    pub(crate) const CONNECTIONS: usize = 4;

    /// How many keys the long listing has. A page of an object store has a thousand; that would cost more than it tells.
    pub(crate) const LISTED: usize = 40;

    /// About how many calls a probe with this plan makes, its cleaning up included.
    pub(crate) fn calls(&self) -> u64 {
        // Two races in which each racer writes once, and a chain in which it reads and writes up to four times.
        let round = 10 * self.racers + 10;
        (CALLS_OF_THE_REST + self.rounds * round + self.samples * 5) as u64
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self { racers: 32, rounds: 10, samples: 100 }
    }
}

fn within(what: &'static str, number: usize, bounds: &RangeInclusive<usize>) -> Result<usize, PlanError> {
    if bounds.contains(&number) {
        return Ok(number);
    }
    Err(PlanError { what, number, least: *bounds.start(), most: *bounds.end() })
}

/// What the checks without a race make, and cleaning up after them. A test holds it against the truth.
const CALLS_OF_THE_REST: usize = 3_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_numbers_are_refused_in_words() {
        assert_eq!(Plan::default().racers(1).unwrap_err().to_string(), "racers are 2 to 512, not 1");
        assert!(Plan::default().racers(513).is_err());
        assert!(Plan::default().rounds(0).is_err());
        assert!(Plan::default().rounds(usize::MAX).is_err());
        assert!(Plan::default().samples(9).is_err());
        assert!(Plan::default().samples(10).is_ok());
    }
}
