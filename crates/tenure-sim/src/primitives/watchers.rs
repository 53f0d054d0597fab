//! Watchers of the leaders of elections.

use tenure_core::election::{LeaderFilter, LeaderReport};
use tenure_core::machine::{Content, Input, ObservedRead, Observer, Sighting};
use tenure_core::{Instant, WallTime};

use super::PrimitivesWorld;
use super::happening::Happening;
use crate::Invariant;
use crate::oracle::Shown;
use crate::tally::{Met, Number};
use crate::time::{MILLI, SECOND};

/// A watcher of one election. It asks through two connections, and their answers overtake each other.
#[derive(Debug)]
pub(super) struct Watcher {
    key: usize,
    filter: LeaderFilter,
    connections: [Observer; 2],
    shown: Shown,
}

impl PrimitivesWorld<'_> {
    pub(super) fn watchers_appear(&mut self) {
        for key in 0..self.plan.elections {
            for _ in 0..self.plan.watchers {
                self.watchers.push(Watcher {
                    key,
                    filter: LeaderFilter::with_rules(self.seed.election),
                    connections: [Observer::new(), Observer::new()],
                    shown: Shown::default(),
                });
            }
        }
    }

    pub(super) fn watches(&mut self, watcher: usize) {
        let look = self.store[self.watchers[watcher].key].read(self.now);
        let answer = self.answers.insert(Input::Read(Ok(look)));
        let slow = self.rng.chance(100);
        let span = if slow { self.rng.between(0, 20 * SECOND) } else { self.rng.between(MILLI, SECOND) };
        let (watcher, sent) = (watcher as u16, self.now);
        self.agenda.push(self.now + span, Happening::Watched { watcher, answer, sent });
        let next = self.now + self.rng.between(SECOND / 2, 10 * SECOND);
        self.agenda.push(next, Happening::Watch { watcher });
    }

    pub(super) fn watched(&mut self, watcher: usize, answer: u32, sent: u64) {
        let Input::Read(Ok(look)) = self.answers.take(answer) else { return };
        self.tally.count(Number::Observations);
        let content = look.content.clone();
        let read = ObservedRead {
            look,
            clock: self.plan.store.clock,
            sent: Instant::from_nanos(sent),
            returned: Instant::from_nanos(self.now),
            wall: WallTime::default(),
        };
        let connection = self.rng.index(2);
        let it = &mut self.watchers[watcher];
        let Some(standing) = it.connections[connection].judge(&read, Sighting::default()) else {
            self.tally.met(Met::Overtaken);
            return;
        };
        let record = match &content {
            Content::Record(record, _) => Some(record),
            Content::Absent | Content::Foreign { .. } => None,
        };
        if let Some(LeaderReport::Leader(record)) = it.filter.saw(record, &standing) {
            self.tally.met(Met::LeaderShown);
            let verdict = it.shown.shows(record.token.get());
            self.verdicts.judge(self.now, Invariant::S8, verdict);
        }
    }
}
