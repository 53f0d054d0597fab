use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{Content, Look, Outcome, Write};
use tenure_core::record::{Nonce, Record};
use tenure_store::{Expect, Stamp, StoreClock, StoreTime, Version};

use crate::rng::Rng;
use crate::swarm::{StoreKind, Versions};
use crate::time::MICRO;

/// The simulated store: one key, linearizable, each delivery atomic.
#[derive(Debug)]
pub(crate) struct Store {
    kind: StoreKind,
    content: Content,
    /// True time at which the content was written.
    written: u64,
    /// Number of versions made.
    made: u64,
    /// Number of versions of this key since it was last created.
    made_of_key: u64,
    /// Total steps of its wall clock.
    stepped: u64,
    /// Older contents, for restores.
    copies: VecDeque<OlderContent>,
    /// Recently superseded versions, each with the time at which it was superseded.
    superseded: VecDeque<(Version, u64)>,
    /// Time for which they are kept.
    memory: u64,
    /// True if another content had the current version recently.
    repeats: bool,
    /// Number of contents so far.
    generation: u64,
    tampered: bool,
    /// True if it ignores conditions.
    lies: bool,
}

/// An older content.
#[derive(Debug)]
struct OlderContent {
    record: Arc<Record>,
    version: Version,
    made_of_key: u64,
    superseded: u64,
}

impl Store {
    /// An empty store. The oracle recognizes versions that repeat within `memory`.
    pub(crate) fn new(kind: StoreKind, memory: u64, lies: bool) -> Self {
        Self {
            kind,
            content: Content::Absent,
            written: 0,
            made: 0,
            made_of_key: 0,
            stepped: 0,
            copies: VecDeque::new(),
            superseded: VecDeque::new(),
            memory,
            repeats: false,
            generation: 0,
            tampered: false,
            lies,
        }
    }

    /// The current content.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// The number of the current content: no other content has it, even if the version is the same.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// True if another content had the current version recently.
    pub(crate) fn has_repeated_version(&self) -> bool {
        self.repeats
    }

    /// True if the content was ever changed from outside. Until then no version repeats.
    pub(crate) fn was_tampered_with(&self) -> bool {
        self.tampered
    }

    /// The current record.
    pub(crate) fn record(&self) -> Option<&Arc<Record>> {
        match &self.content {
            Content::Record(record, _) => Some(record),
            Content::Absent | Content::Foreign { .. } => None,
        }
    }

    /// Answers a read.
    pub(crate) fn read(&self, now: u64) -> Look {
        let age = (self.kind.clock == StoreClock::Ages).then(|| {
            let passed = now - self.written;
            Duration::from_nanos(passed / 1_000_000 * self.kind.rate)
        });
        Look { content: self.content.clone(), age, time: self.time(now) }
    }

    /// The stamp of the entry in a listing that shows the store at this time, perhaps without the size of the value.
    pub(crate) fn stamp(&self, at: u64, has_size: bool) -> Option<Stamp> {
        let earlier = || self.copies.iter().find(|copy| copy.superseded > at);
        let (record, version) = match &self.content {
            Content::Record(record, version) if self.written <= at => (record, version),
            Content::Absent if self.written <= at => return None,
            _ => earlier().map(|copy| (&copy.record, &copy.version))?,
        };
        let size = 100 * record.history.len() + if record.holder.is_some() { 90 } else { 0 };
        Some(Stamp::new(version.as_str()).with_size(has_size.then_some(size as u64)))
    }

    /// Answers a write.
    pub(crate) fn write(&mut self, now: u64, write: &Write) -> Outcome {
        let holds = match (&write.expect, &self.content) {
            (Expect::Absent, Content::Absent) => true,
            (Expect::Version(expected), Content::Record(_, version) | Content::Foreign { version, .. }) => {
                expected == version
            }
            _ => false,
        };
        if !holds && !self.lies {
            return Outcome::Conflict;
        }
        let version = self.next_version(&write.record);
        self.replace(now, Content::Record(Arc::clone(&write.record), version.clone()));
        Outcome::Applied { version, time: self.time(now) }
    }

    // ── changes from outside ──────────────────────────────────────────────────────────────────────────────────────

    /// Deletes the record.
    pub(crate) fn delete(&mut self, now: u64) {
        self.tampered = true;
        self.replace(now, Content::Absent);
        self.made_of_key = 0;
    }

    /// Restores a copy that was superseded before `before`: the youngest of those, or any. False if there is none.
    pub(crate) fn restore(&mut self, now: u64, before: u64, rng: &mut Rng) -> bool {
        let old = self.copies.partition_point(|copy| copy.superseded < before);
        if old == 0 {
            return false;
        }
        let choice = if rng.chance(500) { old - 1 } else { rng.index(old) };
        self.tampered = true;
        let copy = &self.copies[choice];
        let (record, version, made_of_key) =
            (Arc::clone(&copy.record), copy.version.clone(), copy.made_of_key);
        let version = match self.kind.versions {
            Versions::Counter => self.next_version(&record),
            Versions::ContentHash => version,
            Versions::PerKey => {
                self.made_of_key = made_of_key;
                version
            }
        };
        self.replace(now, Content::Record(record, version));
        true
    }

    /// Replaces the record by foreign bytes.
    pub(crate) fn deface(&mut self, now: u64) {
        self.tampered = true;
        self.made += 1;
        self.made_of_key += 1;
        let version = Version::new(format!("foreign-{}", self.made));
        self.replace(now, Content::Foreign { what: "a shopping list".into(), version });
    }

    /// True if a write with this nonce was applied and superseded before.
    pub(crate) fn has_superseded(&self, nonce: Nonce) -> bool {
        self.copies.iter().any(|copy| copy.record.nonce == nonce)
    }

    /// Replaces the content by an earlier one with its version, as a restart of a server that forgets does.
    pub(crate) fn roll_back(&mut self, now: u64, content: Content) {
        self.replace(now, content);
    }

    /// Time on its wall clock, from the beginning of the seed.
    pub(crate) fn wall(&self, now: u64) -> u64 {
        now + self.stepped
    }

    /// True if its clock shows a later time than this token, or has no tick.
    pub(crate) fn clock_is_beyond(&self, now: u64, token: u64) -> bool {
        self.kind.tick == 0 || self.time(now).is_none_or(|time| time.as_micros() > token)
    }

    /// Steps its wall clock forward.
    pub(crate) fn step_clock(&mut self, span: u64) {
        self.stepped += span;
    }

    // ── internals ─────────────────────────────────────────────────────────────────────────────────────────────────

    fn replace(&mut self, now: u64, content: Content) {
        if let Content::Record(record, version) = &self.content {
            while self.superseded.front().is_some_and(|(_, at)| now - at > self.memory) {
                self.superseded.pop_front();
            }
            self.superseded.push_back((version.clone(), now));
            // A restored record that is superseded again counts as young.
            self.copies.retain(|copy| copy.record.nonce != record.nonce);
            if self.copies.len() == COPIES_MAX {
                self.copies.pop_front();
            }
            let (record, version) = (Arc::clone(record), version.clone());
            self.copies.push_back(OlderContent {
                record,
                version,
                made_of_key: self.made_of_key,
                superseded: now,
            });
        }
        self.repeats = match &content {
            Content::Record(_, version) if self.tampered => {
                self.superseded.iter().any(|(old, _)| old == version)
            }
            _ => false,
        };
        self.content = content;
        self.generation += 1;
        self.written = now;
    }

    fn next_version(&mut self, record: &Record) -> Version {
        self.made += 1;
        self.made_of_key += 1;
        let number = match self.kind.versions {
            Versions::Counter => self.made,
            Versions::PerKey => self.made_of_key,
            Versions::ContentHash => content_hash(record),
        };
        let mut text = Digits::default();
        write!(text, "{number}").expect("a number has at most twenty digits");
        Version::new(text.as_str())
    }

    /// The time that its clock shows, if it has one.
    pub(crate) fn time(&self, now: u64) -> Option<StoreTime> {
        let passed = now + self.stepped;
        let shown = passed - passed.checked_rem(self.kind.tick).unwrap_or(0);
        let time = StoreTime::from_micros(self.kind.epoch + shown / MICRO);
        (self.kind.clock >= StoreClock::Floors).then_some(time)
    }
}

/// A hash of a record. It omits informational fields, so that two records can have equal versions.
fn content_hash(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    record.nonce.hash(&mut hasher);
    record.term.hash(&mut hasher);
    record.token.hash(&mut hasher);
    record.ttl.hash(&mut hasher);
    std::mem::discriminant(&record.state).hash(&mut hasher);
    record.holder.as_ref().map(|holder| holder.id()).hash(&mut hasher);
    hasher.finish()
}

/// The digits of a number, without an allocation.
#[derive(Default)]
struct Digits {
    bytes: [u8; 20],
    used: usize,
}

impl Digits {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.used]).expect("only text was written")
    }
}

impl std::fmt::Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.used + text.len();
        self.bytes.get_mut(self.used..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

/// Number of older contents to keep.
const COPIES_MAX: usize = 128;
