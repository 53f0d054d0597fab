use std::sync::Arc;

use tenure_store::StoreClock;

use super::standing::KnownSince;
use super::{Content, Look, Recalled, Rules, Sighting, Standard, Standing, sightings};
use crate::record::Record;
use crate::{Instant, Token, WallTime};

/// Observes a key without contending, and never shows an older token after a newer one.
#[derive(Debug)]
pub struct Observer {
    rules: &'static dyn Rules,
    shown: Token,
    /// The last version seen, and since when it is known.
    known: Option<Recalled>,
}

/// A read of an observer.
#[derive(Clone, Debug)]
pub struct ObservedRead {
    /// Its answer.
    pub look: Look,
    /// Abilities of the store's clock.
    pub clock: StoreClock,
    /// Time of sending.
    pub sent: Instant,
    /// Time of the answer.
    pub returned: Instant,
    /// Wall time of the answer. Informational.
    pub wall: WallTime,
}

impl Observer {
    /// An observer without an observation.
    pub fn new() -> Self {
        Self::with_rules(&Standard)
    }

    /// An observer under other rules, for the simulation.
    pub fn with_rules(rules: &'static dyn Rules) -> Self {
        Self { rules, shown: Token::ZERO, known: None }
    }

    /// Takes in an earlier sighting, which counts for the first read if that shows the same version.
    pub fn recall(&mut self, recalled: Recalled) {
        self.known.get_or_insert(recalled);
    }

    /// The sighting to recall, for the next process.
    pub fn to_recall(&self) -> Option<&Recalled> {
        self.known.as_ref()
    }

    /// The content if it may be shown; `None` if it is older than what was shown before.
    pub fn show(&mut self, content: &Content) -> Option<Arc<Record>> {
        let Content::Record(record, _) = content else { return None };
        if !self.rules.may_show(self.shown, record.token) {
            return None;
        }
        self.shown = record.token;
        Some(Arc::clone(record))
    }

    /// The standing of the key by this read and this sighting of the record's witness; `None` if the read is older than
    /// what was shown before. Earlier sightings of the same version count.
    pub fn judge(&mut self, read: &ObservedRead, sighting: Sighting) -> Option<Standing> {
        let (record, version) = match &read.look.content {
            Content::Absent => return Some(Standing::Absent),
            Content::Foreign { what, .. } => return Some(Standing::Foreign(Arc::clone(what))),
            Content::Record(record, version) => (record, version),
        };
        self.show(&read.look.content)?;
        let now = read.returned;
        let seen = self.rules.observed_from(read.sent, now);
        let aged = sightings::aged_from(self.rules, &read.look, read.clock, now, read.wall);
        let shown = (version, record.nonce);
        let before =
            self.known.take().filter(|earlier| self.rules.same_observation(earlier.identity(), shown));
        let before = before.map(|earlier| earlier.from);
        let from = [aged, before].into_iter().flatten().fold(seen, Instant::min);
        self.known = Some(Recalled { version: version.clone(), nonce: record.nonce, from });
        let known = KnownSince { from, now, judged: aged.is_some() || before.is_some() };
        Some(Standing::of(self.rules, record, known, sighting))
    }
}

impl Default for Observer {
    fn default() -> Self {
        Self::new()
    }
}
