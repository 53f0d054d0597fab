/// The only source of randomness in a simulated world: SplitMix64, so that a seed determines the complete history.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    /// The generator for this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Self { state: seed ^ 0x5DEE_CE66_D1CE_4E5B };
        rng.next();
        rng
    }

    /// A second generator, derived from the current state. Drawing from it leaves this one, and so the remaining
    /// history, unchanged.
    pub(crate) fn aside(&self) -> Self {
        Self::new(self.state ^ 0xA51D_E0FF_5E7A_51DE)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next 128 bits.
    pub(crate) fn wide(&mut self) -> u128 {
        (u128::from(self.next()) << 64) | u128::from(self.next())
    }

    /// A number below `end`; zero if `end` is zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `least` to `most`, both inclusive.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        debug_assert!(least <= most, "{least} to {most}");
        least + self.below(most - least + 1)
    }

    /// A number from `least` to `most` that is small more often than large.
    pub(crate) fn skewed(&mut self, least: u64, most: u64) -> u64 {
        let span = self.between(0, most - least);
        least + self.between(0, span)
    }

    /// True with a probability of `per_mille` in a thousand.
    pub(crate) fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// An index below `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of these elements.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// The state: generators with equal states give equal numbers.
    pub(crate) fn state(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_and_different_seeds_do_not() {
        let draw = |seed| -> Vec<u64> {
            let mut rng = Rng::new(seed);
            (0..8).map(|_| rng.next()).collect()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn drawing_aside_leaves_the_generator_unchanged() {
        let mut rng = Rng::new(7);
        let drawn = rng.aside().next();
        assert_eq!((rng.clone().next(), drawn), (Rng::new(7).next(), rng.aside().next()));
        assert_ne!(rng.next(), drawn);
    }

    #[test]
    fn ranges_include_both_ends_and_nothing_beyond() {
        let mut rng = Rng::new(1);
        let (mut least, mut most) = (u64::MAX, 0);
        for _ in 0..1000 {
            let number = rng.between(3, 6);
            least = least.min(number);
            most = most.max(number);
            assert!((3..=6).contains(&rng.skewed(3, 6)));
        }
        assert_eq!((least, most), (3, 6));
        assert_eq!(rng.below(0), 0);
    }
}
