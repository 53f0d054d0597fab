use crate::rng::Rng;

/// Behaviour of holders. Times are in hundredths of the holder's ttl, chances per thousand.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Longest time until a holder releases.
    pub(crate) hold_most: u64,
    /// Longest time until it wants the lease again.
    pub(crate) rest_most: u64,
    /// Longest time between two checks.
    pub(crate) check_most: u64,
    /// Checks that are followed by a long stall before the write.
    pub(crate) stall: u32,
    /// Extensions that come late.
    pub(crate) late_extension: u32,
    /// Work that does not stop at once.
    pub(crate) slow_stop: u32,
    /// Longest time for which such work continues.
    pub(crate) stop_most: u64,
    /// Work that cannot be stopped.
    pub(crate) unstoppable: u32,
}

impl Work {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            hold_most: rng.pick(&[100, 600, 600, 3000, 100_000]),
            rest_most: rng.pick(&[5, 100, 100, 400]),
            check_most: rng.pick(&[50, 100, 200]),
            stall: rng.pick(&[0, 10, 50]),
            late_extension: rng.pick(&[0, 20]),
            slow_stop: rng.pick(&[0, 100, 400]),
            stop_most: rng.pick(&[30, 300]),
            unstoppable: 0,
        }
    }
}
