use std::sync::Arc;

use tenure_core::machine::{Observer, Sightings};
use tenure_core::{Holder, Instant, WallTime};

use super::happening::Happening;
use crate::parts::{Clock, Life, Link};
use crate::swarm::Member;

/// One process of the world of the primitives, through all its restarts.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) member: Member,
    pub(super) holder: Arc<Holder>,
    pub(super) clock: Clock,
    /// Error of its wall clock, in milliseconds.
    pub(super) wall: i64,
    pub(super) incarnation: u32,
    pub(super) state: Life,
    /// Number of pauses; distinguishes the ends of two pauses.
    pub(super) pause: u32,
    /// Events that arrived while it was paused.
    pub(super) waiting: Vec<Happening>,
    pub(super) link: Link,
    /// Its observers of each key, which remember since when they know a version.
    pub(super) observers: Vec<Observer>,
    /// Its sightings of each key.
    pub(super) sightings: Vec<Sightings>,
}

impl Node {
    pub(super) fn new(member: Member, keys: usize) -> Self {
        Self {
            holder: Arc::new(Holder::new(&member.name).expect("a name that is short and plain")),
            clock: Clock::new(0, member.base, member.rate),
            wall: member.wall,
            incarnation: 0,
            state: Life::Running,
            pause: 0,
            waiting: Vec::new(),
            link: Link::default(),
            observers: super::slots::observers(keys),
            sightings: vec![Sightings::default(); keys],
            member,
        }
    }

    /// Time on its clock.
    pub(super) fn local(&self, now: u64) -> Instant {
        Instant::from_nanos(self.clock.local(now))
    }

    /// Time on its wall clock.
    pub(super) fn wall_time(&self, now: u64) -> WallTime {
        let millis = YEAR_2026 + (now / 1_000_000) as i64 + self.wall;
        WallTime::from_millis(millis.max(0) as u64)
    }
}

/// The beginning of 2026, in milliseconds since 1970.
const YEAR_2026: i64 = 1_767_225_600_000;
