/// The clock of one process. It runs at its own rate, independent of true time.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Its time at `anchor`.
    base: u64,
    /// A true instant.
    anchor: u64,
    /// Number of its microseconds in a true second.
    rate: u64,
}

impl Clock {
    pub(crate) fn new(anchor: u64, base: u64, rate: u64) -> Self {
        assert!(rate > 0, "a clock that stands still has no inverse");
        Self { base, anchor, rate }
    }

    /// Its time at this true instant.
    pub(crate) fn local(&self, now: u64) -> u64 {
        let passed = now - self.anchor;
        self.base + passed / MILLION * self.rate + passed % MILLION * self.rate / MILLION
    }

    /// The first true instant at which it reaches `local`.
    pub(crate) fn reaches(&self, local: u64) -> u64 {
        let wanted = local.saturating_sub(self.base);
        let (whole, part) = (wanted / self.rate, wanted % self.rate);
        self.anchor + whole.saturating_mul(MILLION).saturating_add((part * MILLION).div_ceil(self.rate))
    }

    /// Stops the clock from `now` for `span`, as if the machine was suspended together with its clock.
    pub(crate) fn freeze(&mut self, now: u64, span: u64) {
        self.base = self.local(now).saturating_sub(span / MILLION * self.rate);
        self.anchor = now;
    }
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaches_is_the_first_true_instant_with_that_local_time() {
        for rate in [999_001, 1_000_000, 1_049_999, 950_001, 1] {
            let clock = Clock::new(17, 1_000, rate);
            for local in [1_000, 1_001, 1_999, 123_456_789, 20_000_000_007] {
                let at = clock.reaches(local);
                assert!(clock.local(at) >= local, "rate {rate}, local {local}");
                assert!(at == 17 || clock.local(at - 1) < local, "rate {rate}, local {local}");
            }
        }
    }
}
