use std::collections::VecDeque;
use std::sync::Arc;

use tenure_core::machine::{Recalled, Sightings, TermRef};
use tenure_core::{Holder, WallTime};
use tenure_store::{Quarantine, Version};

use super::event::Event;
use super::lease::Lease;
use crate::parts::{Clock, Life, Link};
use crate::swarm::Member;

/// One process, through all its restarts.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) member: Member,
    pub(super) holder: Arc<Holder>,
    pub(super) clock: Clock,
    /// Error of its wall clock, in milliseconds.
    pub(super) wall: i64,
    pub(super) incarnation: u32,
    pub(super) state: Life,
    /// Number of pauses; distinguishes the ends of two pauses.
    pub(super) pause: u32,
    /// Time of the last pause.
    pub(super) paused_at: u64,
    /// Events that arrived while it was paused.
    pub(super) waiting: Vec<Event>,
    pub(super) sightings: Sightings,
    /// Sighting of an earlier incarnation, until this one has read the key.
    pub(super) recalled: Option<Recalled>,
    /// Its leases, followed by those of the commands of its scripts.
    pub(super) leases: Vec<Option<Lease>>,
    pub(super) link: Link,
    /// Its connection to the server of a store that may forget.
    pub(super) connection: Option<Quarantine>,
    /// The handle that it saved.
    pub(super) saved: Option<Saved>,
    /// Number of children of earlier incarnations that still act.
    pub(super) orphans: u32,
    /// Generations of the store's content that it saw, by version, the latest at the end.
    versions: VecDeque<(Version, u64)>,
    /// The greatest token that an answer showed to this incarnation, and the time of that answer.
    pub(super) shown: (u64, u64),
}

/// A handle that was saved, to resume its term after a restart.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) handle: TermRef,
    /// The boot of the machine: after another boot the deadline has no meaning.
    pub(super) boot: u32,
    /// The incarnation that saved it. Only a later one may resume it, never the same one.
    pub(super) incarnation: u32,
}

impl Process {
    pub(super) fn new(member: Member) -> Self {
        let clock = Clock::new(0, member.base, member.rate);
        let commands = if member.script > 0 { COMMANDS } else { 0 };
        Self {
            holder: Arc::new(Holder::new(&member.name).expect("a name that is short and plain")),
            clock,
            wall: member.wall,
            incarnation: 0,
            state: Life::Running,
            pause: 0,
            paused_at: 0,
            waiting: Vec::new(),
            sightings: Sightings::default(),
            recalled: None,
            leases: (0..member.handles + commands).map(|_| None).collect(),
            link: Link::default(),
            connection: None,
            saved: None,
            orphans: 0,
            versions: VecDeque::with_capacity(VERSIONS_MAX),
            shown: (0, 0),
            member,
        }
    }

    /// Slots of its own leases.
    pub(super) fn slots(&self) -> std::ops::Range<usize> {
        0..self.member.handles
    }

    /// A free slot for another command of a script.
    pub(super) fn room_for_command(&self) -> Option<usize> {
        (self.member.handles..self.leases.len()).find(|slot| self.leases[*slot].is_none())
    }

    /// An answer showed this generation of the content under this version.
    pub(super) fn note_version(&mut self, version: &Version, generation: u64) {
        if self.versions.back().is_some_and(|(_, last)| *last == generation) {
            return;
        }
        if self.versions.len() == VERSIONS_MAX {
            self.versions.pop_front();
        }
        self.versions.push_back((version.clone(), generation));
    }

    /// True if the first read of this incarnation showed the version that an earlier one saw. It is checked once, after
    /// that read.
    pub(super) fn recognizes(&mut self) -> bool {
        let Some(latest) = self.sightings.latest() else { return false };
        self.recalled.take().is_some_and(|recalled| latest.to_recall() == Some(recalled))
    }

    /// The generation that it associates with this version.
    pub(super) fn content_of(&self, version: &Version) -> Option<u64> {
        self.versions.iter().rev().find(|(known, _)| known == version).map(|(_, generation)| *generation)
    }

    /// Time on its wall clock.
    pub(super) fn wall_time(&self, now: u64) -> WallTime {
        let millis = YEAR_2026 + (now / 1_000_000) as i64 + self.wall;
        WallTime::from_millis(millis.max(0) as u64)
    }
}

/// Largest number of concurrent commands of the scripts of one process.
const COMMANDS: usize = 4;

/// The beginning of 2026, in milliseconds since 1970.
const YEAR_2026: i64 = 1_767_225_600_000;

/// Number of versions that a process keeps, for the oracle only.
const VERSIONS_MAX: usize = 16;
