use std::ops::RangeInclusive;

/// Amount of work of a probe. Each number has bounds: a probe of a cloud store costs money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a plan does nothing until it is given to a probe"]
pub struct Plan {
    pub(crate) racers: usize,
    pub(crate) rounds: usize,
    pub(crate) samples: usize,
}

/// Error of a number that is out of bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number of {what} must be from {least} to {most}, not {number}")]
pub struct PlanError {
    what: &'static str,
    number: usize,
    least: usize,
    most: usize,
}

impl Plan {
    /// Bounds of the number of racers.
    const RACERS: RangeInclusive<usize> = 2..=512;
    /// Bounds of the number of rounds.
    const ROUNDS: RangeInclusive<usize> = 1..=10_000;
    /// Bounds of the number of samples.
    const SAMPLES: RangeInclusive<usize> = 10..=10_000;

    /// Sets the number of racers that write the same key at the same time. Default: 32.
    pub fn racers(mut self, racers: usize) -> Result<Self, PlanError> {
        self.racers = within("racers", racers, &Self::RACERS)?;
        Ok(self)
    }

    /// Sets the number of rounds of each kind of race. Default: 10. A server that is almost atomic fails only one round
    /// in many.
    pub fn rounds(mut self, rounds: usize) -> Result<Self, PlanError> {
        self.rounds = within("rounds", rounds, &Self::ROUNDS)?;
        Ok(self)
    }

    /// Sets the number of timed calls of each kind. Default: 100. With fewer, the 99th percentile is the slowest call.
    pub fn samples(mut self, samples: usize) -> Result<Self, PlanError> {
        self.samples = within("samples", samples, &Self::SAMPLES)?;
        Ok(self)
    }

    /// Number of connections that racers share.
    pub(crate) const CONNECTIONS: usize = 4;

    /// Number of keys in the long listing. A page of an object store has a thousand, which would cost more than the
    /// result is worth.
    pub(crate) const LISTED: usize = 40;

    /// Approximate number of calls of a probe with this plan, including clean-up.
    pub(crate) fn calls(&self) -> u64 {
        // Two races in which each racer writes once, and a chain in which each racer reads and writes up to four times.
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

/// Calls of the checks without a race, including their clean-up. A test compares it with the real number.
const CALLS_OF_THE_REST: usize = 3_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_bounds_are_refused_with_a_message() {
        assert_eq!(
            Plan::default().racers(1).unwrap_err().to_string(),
            "the number of racers must be from 2 to 512, not 1"
        );
        assert!(Plan::default().racers(513).is_err());
        assert!(Plan::default().rounds(0).is_err());
        assert!(Plan::default().rounds(usize::MAX).is_err());
        assert!(Plan::default().samples(9).is_err());
        assert!(Plan::default().samples(10).is_ok());
    }
}
