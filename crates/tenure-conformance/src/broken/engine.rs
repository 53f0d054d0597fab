use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tenure::clock::{Clock, Instant, ManualClock};
use tenure_store::{
    Applied, Conflict, Entry, Expect, Key, Listed, Prefix, Put, Reading, Reason, Removal, Stamp, StoreError,
    StoreTime, Version,
};

use super::Lie;
use super::fault::Fault;
use super::hints::{HintStream, Watchers};
use super::pause::pause;

/// A map that checks and writes under one lock. Each lie changes it in one place.
#[derive(Debug)]
pub(super) struct Engine {
    lie: Option<Lie>,
    clock: ManualClock,
    /// Start of this store's time.
    began: Instant,
    state: Mutex<EngineState>,
    hints: Watchers,
}

#[derive(Debug, Default)]
struct EngineState {
    slots: BTreeMap<Key, EngineEntry>,
    backup: BTreeMap<Key, EngineEntry>,
    /// Number of writes so far: the version of an honest store.
    writes: u64,
    /// Number of conditions that did not hold so far.
    misfits: u64,
    times_told: u64,
    reads: u64,
    /// Number of listings with stamps so far.
    listings: u64,
    newest: Option<Key>,
    wedged: BTreeSet<Key>,
    next_put: Option<Fault>,
}

#[derive(Clone, Debug)]
struct EngineEntry {
    value: Bytes,
    version: Version,
    written: Instant,
    /// Number of writes of this entry since it was created.
    generation: u64,
    previous: Option<(Bytes, Version)>,
    /// Number of reads that may still return the previous value.
    stale: u32,
}

impl Engine {
    pub(super) fn new(lie: Option<Lie>, clock: ManualClock) -> Self {
        let began = clock.now();
        Self { lie, clock, began, state: Mutex::default(), hints: Watchers::default() }
    }

    pub(super) fn lie(&self) -> Option<Lie> {
        self.lie
    }

    // ── the contract ────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn get(&self, key: &Key) -> Reading {
        let key = self.name(key);
        let mut state = self.state();
        self.evict(&mut state, &key);
        state.reads += 1;
        let age_jumps = self.has_lie(Lie::AgesJump) && state.reads.is_multiple_of(4);
        let unsteady = self.has_lie(Lie::UnsteadyVersions);
        let (now, reads) = (self.clock.now(), state.reads);
        let entry = state.slots.get_mut(&key).and_then(|slot| {
            let age = if age_jumps { Duration::ZERO } else { now.since(slot.written) };
            let age = if self.has_lie(Lie::AgesRunFast) { age * 10 } else { age };
            let (value, version) = if slot.stale > 0 {
                slot.stale -= 1;
                slot.previous.clone()?
            } else {
                (slot.value.clone(), slot.version.clone())
            };
            let version = if unsteady { Version::new(format!("{version}@{reads}")) } else { version };
            Some(Entry::new(value, version).with_age(age))
        });
        let invented = || Entry::new(Bytes::new(), Version::new("0")).with_age(Duration::ZERO);
        let entry = entry.or_else(|| self.has_lie(Lie::EmptyForMissing).then(invented));
        Reading::new(entry).with_time(self.time(&mut state))
    }

    pub(super) async fn put(
        &self,
        key: &Key,
        value: Bytes,
        expect: Expect,
        interval: Duration,
    ) -> Result<Put, StoreError> {
        let name = self.name(key);
        self.throttle(&name, interval)?;
        let fault = self.state().next_put.take();
        if fault == Some(Fault::LosesRequest) {
            return self.answer_of_a_lost_request();
        }
        let value = self.check_size(value)?;
        self.refuse_below_a_file(&name)?;

        let put = match self.lie {
            Some(Lie::SaysOkWithoutWriting) => Put::Applied(self.applied(Version::new("ok"))),
            Some(Lie::RacyCheckThenAct) => {
                let holds = self.expectation_holds(&self.state(), &name, &expect);
                pause().await;
                if holds { self.write(&mut self.state(), &name, value) } else { Put::Conflict(Conflict) }
            }
            Some(Lie::TornWrites) if self.expectation_holds(&self.state(), &name, &expect) => {
                let torn = value.slice(..value.len() / 2);
                let _ = self.write(&mut self.state(), &name, torn);
                pause().await;
                self.write(&mut self.state(), &name, value)
            }
            Some(Lie::DroppedWriteWedges) => {
                if !self.state().wedged.insert(name.clone()) {
                    return Err(StoreError::throttled(None));
                }
                pause().await;
                self.state().wedged.remove(&name);
                self.look_and_write(&name, value, &expect)
            }
            _ => self.look_and_write(&name, value, &expect),
        };

        if matches!(put, Put::Applied(_)) && !self.has_lie(Lie::NeverHints) {
            self.hints.changed(key);
        }
        if fault == Some(Fault::LosesAnswer) { self.answer_of_a_lost_answer() } else { Ok(put) }
    }

    pub(super) async fn remove(&self, key: &Key, version: &Version) -> Removal {
        let name = self.name(key);
        let expect = Expect::Version(version.clone());
        let mut holds = self.expectation_holds(&self.state(), &name, &expect);
        if self.has_lie(Lie::RacyRemoval) {
            pause().await;
        }
        let mut state = self.state();
        if !self.has_lie(Lie::RacyRemoval) {
            holds = self.expectation_holds(&state, &name, &expect) || self.has_lie(Lie::RemovesAnyVersion);
        }
        if holds && state.slots.remove(&name).is_some() {
            Removal::Removed
        } else {
            Removal::Conflict(Conflict)
        }
    }

    pub(super) fn list(&self, prefix: &Prefix) -> Vec<Key> {
        let state = self.state();
        let covered = |key: &&Key| match self.lie {
            Some(Lie::ListsByLetters) => key.as_str().starts_with(prefix.as_str()),
            Some(Lie::ListsEverything) => true,
            _ => prefix.covers(key),
        };
        let mut keys: Vec<Key> = state.slots.keys().filter(covered).cloned().collect();
        match self.lie {
            Some(Lie::ListMisses) => keys.retain(|key| state.newest.as_ref() != Some(key)),
            Some(Lie::HidesReservedNames) => keys.retain(|key| !key.is_reserved()),
            Some(Lie::ListRepeats) => keys.extend(keys.clone()),
            Some(Lie::ListsForeignNames) => {
                let staged: Vec<Key> =
                    keys.iter().filter_map(|key| Key::from_stored(&format!("{key}#1")).ok()).collect();
                keys.extend(staged);
            }
            _ => {}
        }
        keys
    }

    pub(super) fn listed(&self, prefix: &Prefix) -> Vec<Listed> {
        let keys = self.list(prefix);
        let mut state = self.state();
        state.listings += 1;
        let listed = keys.into_iter().map(|key| {
            let mark = match (self.lie, state.slots.get(&key)) {
                (Some(Lie::StampsStandStill), _) => String::new(),
                (Some(Lie::StampsRestless), _) => state.listings.to_string(),
                (_, slot) => slot.map(|slot| slot.version.to_string()).unwrap_or_default(),
            };
            Listed::new(key, Stamp::new(mark))
        });
        listed.collect()
    }

    pub(super) fn watch(&self, prefix: &Prefix) -> HintStream {
        self.hints.watch(prefix)
    }

    // ── administration and faults ───────────────────────────────────────────────────────────────────────────────

    pub(super) fn fault_next_put(&self, fault: Fault) {
        self.state().next_put = Some(fault);
    }

    pub(super) fn restart(&self) {
        let mut state = self.state();
        state.wedged.clear();
        match self.lie {
            Some(Lie::ForgetsAfterRestart) => state.slots.clear(),
            Some(Lie::RestampsOnRestart) => {
                let EngineState { slots, writes, .. } = &mut *state;
                for slot in slots.values_mut() {
                    *writes += 1;
                    slot.version = Version::new(writes.to_string());
                }
            }
            _ => {}
        }
    }

    pub(super) fn delete(&self, key: &Key) {
        let key = self.name(key);
        self.state().slots.remove(&key);
    }

    pub(super) fn snapshot(&self) {
        let mut state = self.state();
        state.backup = state.slots.clone();
    }

    pub(super) fn restore(&self) {
        let mut state = self.state();
        state.slots = state.backup.clone();
    }

    /// Deletes the entry if it was not written for long.
    fn evict(&self, state: &mut EngineState, key: &Key) {
        let idle = state.slots.get(key).map(|slot| self.clock.now().since(slot.written));
        if self.has_lie(Lie::EvictsIdleEntries) && idle > Some(IDLE_MAX) {
            state.slots.remove(key);
        }
    }

    // ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// Name of the key in this store.
    fn name(&self, key: &Key) -> Key {
        let bent = match self.lie {
            Some(Lie::CaseInsensitiveKeys) => key.as_str().to_lowercase(),
            Some(Lie::DecodesKeys) => key.as_str().replace("%41", "A"),
            _ => return key.clone(),
        };
        // The lower-case form may be longer, and then too long; such a key stays as it is.
        Key::from_stored(&bent).unwrap_or_else(|_| key.clone())
    }

    fn expectation_holds(&self, state: &EngineState, key: &Key, expect: &Expect) -> bool {
        let slot = state.slots.get(key);
        let honestly = match (expect, slot) {
            (Expect::Absent, slot) => slot.is_none(),
            (Expect::Version(version), Some(slot)) => slot.version == *version,
            (Expect::Version(_), None) => false,
        };
        let bent = match (self.lie, expect) {
            (Some(Lie::IgnoresCreate), Expect::Absent) => true,
            (Some(Lie::IgnoresReplace), Expect::Version(_)) => true,
            (Some(Lie::IgnoresAllConditions), _) => true,
            (Some(Lie::CreatesOnReplaceOfMissing), Expect::Version(_)) => slot.is_none(),
            (Some(Lie::AcceptsPreviousVersion), Expect::Version(version)) => {
                slot.and_then(|slot| slot.previous.as_ref()).is_some_and(|(_, previous)| previous == version)
            }
            (Some(Lie::UnsteadyVersions), Expect::Version(version)) => {
                let written = version.as_str().split('@').next().unwrap_or_default();
                slot.is_some_and(|slot| slot.version.as_str() == written)
            }
            (Some(Lie::SkipsConditionsSometimes), _) => state.misfits % 5 == 4,
            _ => false,
        };
        honestly || bent
    }

    /// The honest way: no other call runs in between.
    fn look_and_write(&self, key: &Key, value: Bytes, expect: &Expect) -> Put {
        let mut state = self.state();
        if self.expectation_holds(&state, key, expect) {
            return self.write(&mut state, key, value);
        }
        state.misfits += 1;
        if self.has_lie(Lie::WritesDespiteConflict) {
            let _ = self.write(&mut state, key, value);
        }
        Put::Conflict(Conflict)
    }

    // ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────

    fn write(&self, state: &mut EngineState, key: &Key, value: Bytes) -> Put {
        state.writes += 1;
        state.misfits += 1;
        let before = state.slots.get(key);
        let generation = before.map_or(1, |slot| slot.generation + 1);
        let version = Version::new(match self.lie {
            Some(Lie::ContentVersions) => hash(&value),
            Some(Lie::RepeatedVersions) => (state.writes % 41).to_string(),
            Some(Lie::SameVersionForEveryWrite) => "same".to_owned(),
            Some(Lie::VersionsRestartAfterDelete) => generation.to_string(),
            _ => state.writes.to_string(),
        });
        let lost = self.has_lie(Lie::LosesWrites) && state.writes.is_multiple_of(7);
        if !lost {
            let slot = EngineEntry {
                value: self.stored_bytes(value),
                version: version.clone(),
                written: self.clock.now(),
                generation,
                previous: before.map(|slot| (slot.value.clone(), slot.version.clone())),
                stale: if self.has_lie(Lie::StaleReads) { 2 } else { 0 },
            };
            if state.slots.insert(key.clone(), slot).is_none() {
                state.newest = Some(key.clone());
            }
        }
        if self.has_lie(Lie::ConflictButWrites) && state.writes.is_multiple_of(3) {
            return Put::Conflict(Conflict);
        }
        Put::Applied(Applied::new(version).with_time(self.time(state)))
    }

    /// The bytes that the store keeps.
    fn stored_bytes(&self, value: Bytes) -> Bytes {
        match self.lie {
            Some(Lie::TruncatesValues) => value.slice(..value.len().min(1024)),
            Some(Lie::BendsBytes) => String::from_utf8_lossy(&value).into_owned().into(),
            _ => value,
        }
    }

    /// The value, if it is small enough.
    fn check_size(&self, value: Bytes) -> Result<Bytes, StoreError> {
        if value.len() <= VALUE_MAX {
            return Ok(value);
        }
        if self.has_lie(Lie::TakesTooLarge) {
            return Ok(value.slice(..VALUE_MAX));
        }
        let why = format!("{} bytes are more than {VALUE_MAX}", value.len());
        Err(StoreError::refused(Reason::Invalid, why))
    }

    fn refuse_below_a_file(&self, key: &Key) -> Result<(), StoreError> {
        if !self.has_lie(Lie::KeysAreDirectories) {
            return Ok(());
        }
        let below = |lower: &Key, upper: &Key| lower != upper && Prefix::of(upper).covers(lower);
        if self.state().slots.keys().any(|other| below(key, other) || below(other, key)) {
            return Err(StoreError::refused(Reason::Invalid, "not a directory"));
        }
        Ok(())
    }

    // ── answering ───────────────────────────────────────────────────────────────────────────────────────────────

    /// Google Cloud Storage and R2 answer 429 to more than one write per second and name, whatever its condition.
    fn throttle(&self, key: &Key, interval: Duration) -> Result<(), StoreError> {
        let state = self.state();
        let since = state.slots.get(key).map(|slot| self.clock.now().since(slot.written));
        match since.and_then(|since| interval.checked_sub(since)) {
            Some(left) if !left.is_zero() => Err(StoreError::throttled(Some(left))),
            _ => Ok(()),
        }
    }

    fn answer_of_a_lost_request(&self) -> Result<Put, StoreError> {
        if self.has_lie(Lie::UnknownAsApplied) {
            return Ok(Put::Applied(self.applied(Version::new("written-behind"))));
        }
        Err(StoreError::unknown("the request was lost"))
    }

    fn answer_of_a_lost_answer(&self) -> Result<Put, StoreError> {
        match self.lie {
            Some(Lie::UnknownAsConflict) => Ok(Put::Conflict(Conflict)),
            Some(Lie::UnknownAsRefused) => Err(StoreError::refused(Reason::Unreachable, "connection closed")),
            _ => Err(StoreError::unknown("the answer was lost")),
        }
    }

    fn applied(&self, version: Version) -> Applied {
        Applied::new(version).with_time(self.time(&mut self.state()))
    }

    fn time(&self, state: &mut EngineState) -> Option<StoreTime> {
        if self.has_lie(Lie::NoTime) {
            return None;
        }
        state.times_told += 1;
        let late = self.has_lie(Lie::ClockGoesBack) && state.times_told.is_multiple_of(8);
        let back = if late { HOUR } else { 0 };
        let passed = match self.lie {
            Some(Lie::FrozenTime) => 0,
            _ => self.clock.now().since(self.began).as_secs().saturating_mul(SECOND),
        };
        Some(StoreTime::from_micros(START_MICROS.saturating_add(passed) - back))
    }

    fn has_lie(&self, lie: Lie) -> bool {
        self.lie == Some(lie)
    }

    fn state(&self) -> MutexGuard<'_, EngineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(value: &Bytes) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Maximum size of a value: large enough for many records.
pub(super) const VALUE_MAX: usize = 64 << 10;

/// Longer than a lease of ten seconds that is not renewed is looked at: leases do not show this lie.
const IDLE_MAX: Duration = Duration::from_secs(13);

/// Start of this store's time: the first of January 2026, in microseconds since 1970.
const START_MICROS: u64 = 1_767_225_600_000_000;

/// In microseconds.
const HOUR: u64 = 3_600_000_000;

const SECOND: u64 = 1_000_000;
