use std::time::Duration;

use tenure_core::{Drift, Timing};

use super::Weather;
use crate::rng::Rng;
use crate::time::{MINUTE, SECOND};

/// Configuration of one process.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Name of the holder. Twins share one.
    pub(crate) name: String,
    /// The physical machine that it runs on.
    pub(crate) host: usize,
    pub(crate) timing: Timing,
    /// Declared bound of its clock's drift, in parts per million.
    pub(crate) drift: u32,
    /// True rate of its clock: a million is exact.
    pub(crate) rate: u64,
    /// Time on its clock at the beginning.
    pub(crate) base: u64,
    /// Error of its wall clock, in milliseconds.
    pub(crate) wall: i64,
    /// Number of handles for the key that it has at a time.
    pub(crate) handles: usize,
    /// True if its leases have a witness.
    pub(crate) witness: bool,
    /// Strict leases, per thousand.
    pub(crate) strict: u32,
    /// Leases that are renewed manually, per thousand.
    pub(crate) manual: u32,
    /// Leases that are taken over from their holder (steal), per thousand.
    pub(crate) steal: u32,
    /// Leases that are tried only once, or for a limited time, per thousand.
    pub(crate) impatient: u32,
    /// Restarts that resume their former term, per thousand.
    pub(crate) resume: u32,
    /// Restarts that keep all their sightings, per thousand.
    pub(crate) remembers: u32,
    /// Leases of a script, which keeps a handle instead of a process, per thousand.
    pub(crate) script: u32,
    /// True if it heeds the tree of a holder whose record has run out.
    pub(crate) heeds: bool,
    /// True if it runs an old version, which copies the field about work that cannot be stopped.
    pub(crate) old: bool,
}

impl Member {
    pub(crate) fn draw(rng: &mut Rng, number: usize, hosts: usize, weather: Weather) -> Self {
        let drift = rng.pick(&[1_000, 10_000, 50_000]);
        let ttl = if rng.chance(300) { rng.pick(&[2_000, 20_000]) } else { rng.between(2_000, 20_000) };
        let timeout = if rng.chance(500) { ttl / 10 } else { ttl * rng.between(30, 190) / 1000 };
        let twin = rng.chance(150);
        Self {
            name: if twin { "twin".into() } else { format!("p{number}") },
            host: rng.index(hosts),
            timing: timing(ttl, timeout, drift),
            drift,
            rate: draw_rate(rng, u64::from(drift), weather),
            base: rng.between(60 * MINUTE, 600 * MINUTE),
            wall: if rng.chance(500) { 0 } else { rng.between(0, 7_200_000) as i64 - 3_600_000 },
            handles: if rng.chance(150) { 2 } else { 1 },
            witness: rng.chance(600),
            strict: if rng.chance(100) { 500 } else { 0 },
            manual: if rng.chance(150) { 400 } else { 0 },
            steal: if rng.chance(250) { rng.pick(&[20, 100, 500]) as u32 } else { 0 },
            impatient: rng.pick(&[0, 0, 100, 500]),
            resume: rng.pick(&[0, 200, 800]),
            remembers: rng.pick(&[0, 500]),
            script: 0,
            heeds: false,
            old: false,
        }
    }

    /// Its ttl in nanoseconds.
    pub(crate) fn ttl(&self) -> u64 {
        self.timing.ttl().as_millis() * (SECOND / 1000)
    }

    /// Its call timeout in nanoseconds.
    pub(crate) fn timeout(&self) -> u64 {
        self.timing.timeout().as_nanos() as u64
    }

    /// Sets the drift bound, and the durations that depend on it.
    pub(crate) fn set_drift(&mut self, drift: u32) {
        self.drift = drift;
        let ttl = self.timing.ttl().as_millis();
        self.timing = timing(ttl, self.timing.timeout().as_millis() as u64, drift);
    }

    /// Sets ttl and call timeout, in milliseconds.
    pub(crate) fn set_times(&mut self, ttl: u64, timeout: u64) {
        self.timing = timing(ttl, timeout, self.drift);
    }
}

fn timing(ttl: u64, timeout: u64, drift: u32) -> Timing {
    let drift = Drift::from_ppm(drift).expect("a drift within its range");
    let built =
        Timing::builder(Duration::from_millis(ttl)).timeout(Duration::from_millis(timeout)).drift(drift);
    built.build().expect("durations that fit together")
}

/// A rate within the bound, in half of the cases at one of its ends. In seeds with broken clocks half of the bounds are
/// ten times as wide. One part in a million is reserved for rounding to whole nanoseconds.
fn draw_rate(rng: &mut Rng, drift: u64, weather: Weather) -> u64 {
    let most = if weather == Weather::BrokenClocks && rng.chance(500) { 10 * drift } else { drift } - 1;
    match rng.below(4) {
        0 => 1_000_000 - most,
        1 => 1_000_000 + most,
        _ => 1_000_000 - most + rng.between(0, 2 * most),
    }
}
