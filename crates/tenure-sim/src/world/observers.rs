use tenure_core::machine::{Input, Observer, Rules};

use super::World;
use super::event::Event;
use crate::Invariant;
use crate::tally::{Number, Sometimes};
use crate::time::{MILLI, SECOND};

/// An observer.
#[derive(Debug)]
pub(super) struct SimObserver {
    observer: Observer,
    /// Number of grants at its previous read.
    grants: u64,
}

impl SimObserver {
    pub(super) fn new(rules: &'static dyn Rules) -> Self {
        Self { observer: Observer::with_rules(rules), grants: 0 }
    }
}

impl World<'_> {
    /// Reads the key. The answers of two reads may arrive in reverse order.
    pub(super) fn observes(&mut self, observer: usize) {
        let look = self.store.read(self.now);
        let answer = self.answers.insert((Input::Read(Ok(look)), 0));
        let slow = self.rng.chance(100);
        let span = if slow { self.rng.between(0, 20 * SECOND) } else { self.rng.between(MILLI, SECOND) };
        let observer = observer as u16;
        self.agenda.push(self.now + span, Event::Observed { observer, answer });
        let next = self.now + self.rng.between(SECOND, 20 * SECOND);
        self.agenda.push(next, Event::Observe { observer });
        let watcher = &mut self.watchers[observer as usize];
        if self.grants_applied > watcher.grants + 1 {
            self.tally.reached(Sometimes::ObserverSkipped);
        }
        watcher.grants = self.grants_applied;
    }

    pub(super) fn observed(&mut self, observer: usize, answer: u32) {
        self.tally.count(Number::Observations);
        let (Input::Read(Ok(look)), _) = self.answers.take(answer) else { return };
        self.show(observer, &look.content);
    }

    fn show(&mut self, observer: usize, content: &tenure_core::machine::Content) {
        if let Some(record) = self.watchers[observer].observer.show(content) {
            let verdict = self.oracle.shown[observer].shows(record.token.get());
            self.oracle.judge(self.now, Invariant::S8, verdict);
        }
    }

    /// After quiet, every observer reads once more, and must show the present token.
    pub(super) fn last_look(&mut self) {
        let content = self.store.content().clone();
        let present = self.store.record().map_or(0, |record| record.token.get());
        for observer in 0..self.watchers.len() {
            self.show(observer, &content);
            let verdict = self.oracle.shown[observer].at_the_end(present);
            self.oracle.judge(self.now, Invariant::S8, verdict);
        }
    }
}
