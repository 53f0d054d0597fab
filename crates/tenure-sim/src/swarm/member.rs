use std::time::Duration;

use tenure_core::{Drift, Timing};

use super::Weather;
use crate::rng::Rng;
use crate::time::{MINUTE, SECOND};

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The name it holds leases under. Twins have the same.
    pub(crate) name: String,
    /// The physical machine it runs on.
    pub(crate) host: usize,
    pub(crate) timing: Timing,
    /// How far it declares its clock to be off, in parts per million.
    pub(crate) drift: u32,
    /// How fast its clock really runs: a million is true.
    pub(crate) rate: u64,
    /// What its clock shows at the beginning.
    pub(crate) base: u64,
    /// How far its wall clock is off, in milliseconds.
    pub(crate) wall: i64,
    /// How many handles for the key it has at a time.
    pub(crate) handles: usize,
    /// Whether its leases have a witness.
    pub(crate) witness: bool,
    /// How many of a thousand leases are strict.
    pub(crate) strict: u32,
    /// How many of a thousand leases are renewed by hand.
    pub(crate) manual: u32,
    /// How many of a thousand leases are taken on purpose.
    pub(crate) steal: u32,
    /// How many of a thousand leases are tried only once, or for a while.
    pub(crate) impatient: u32,
    /// How many of a thousand restarts go on with the term they had.
    pub(crate) resume: u32,
    /// How many of a thousand restarts remember what was seen before.
    pub(crate) remembers: u32,
    /// How many of a thousand leases are of a script, which keeps a handle and no process.
    pub(crate) script: u32,
    /// True if it heeds the tree of a holder whose record has run out.
    pub(crate) heeds: bool,
    /// True if it is of a version that copies the field about work that cannot be stopped.
    pub(crate) old: bool,
}

impl Member {
    pub(super) fn draw(rng: &mut Rng, number: usize, hosts: usize, weather: Weather) -> Self {
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

    /// Its request timeout in nanoseconds.
    pub(crate) fn timeout(&self) -> u64 {
        self.timing.timeout().as_nanos() as u64
    }

    /// Sets the clock's bound, and with it the durations, which depend on it.
    pub(super) fn set_drift(&mut self, drift: u32) {
        self.drift = drift;
        let ttl = self.timing.ttl().as_millis();
        self.timing = timing(ttl, self.timing.timeout().as_millis() as u64, drift);
    }

    /// Sets ttl and request timeout, in milliseconds.
    pub(super) fn set_times(&mut self, ttl: u64, timeout: u64) {
        self.timing = timing(ttl, timeout, self.drift);
    }
}

fn timing(ttl: u64, timeout: u64, drift: u32) -> Timing {
    let drift = Drift::from_ppm(drift).expect("a drift within its range");
    let built =
        Timing::builder(Duration::from_millis(ttl)).timeout(Duration::from_millis(timeout)).drift(drift);
    built.build().expect("durations that fit together")
}

/// A rate within the bound, at one of its ends half of the time; ten times beyond it in seeds with broken clocks. One
/// part in a million is left for the rounding to whole nanoseconds.
fn draw_rate(rng: &mut Rng, drift: u64, weather: Weather) -> u64 {
    let most = if weather == Weather::BrokenClocks && rng.chance(500) { 10 * drift } else { drift } - 1;
    match rng.below(4) {
        0 => 1_000_000 - most,
        1 => 1_000_000 + most,
        _ => 1_000_000 - most + rng.between(0, 2 * most),
    }
}
