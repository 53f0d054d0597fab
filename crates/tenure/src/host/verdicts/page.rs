use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::check;

use crate::clock::{Domain, Instant};
use crate::host::disk::page::Page;

/// Verdicts on the stores that were checked on one clock: one file.
///
/// ```text
/// {"verdicts":"tenure","format":1,"check":1,"domain":"0f3c…,time:[4026531834]+0.0"}
/// {"place":"s3://bucket/locks?region=eu-west-1","sound":true,"at":8123456789}
/// {"entries":1,"checksum":"91b2c3d4e5f60718"}
/// ```
#[derive(Debug, Default)]
pub(super) struct VerdictPage(BTreeMap<String, Verdict>);

/// The verdict on one store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdict {
    place: String,
    /// True if it passed the safety check; false after a breach, which voids every check that began before it.
    sound: bool,
    /// Start of the check, or time of the breach, in nanoseconds of the boot-time clock.
    at: u64,
}

#[derive(Serialize)]
struct VerdictHead {
    verdicts: &'static str,
    format: u32,
    /// Version of the safety check. A later version voids earlier verdicts.
    check: u32,
    domain: String,
}

impl Verdict {
    pub(super) fn sound(place: &str, began: Instant) -> Self {
        Self { place: place.to_owned(), sound: true, at: began.as_nanos() }
    }

    pub(super) fn broken(place: &str, seen: Instant) -> Self {
        Self { place: place.to_owned(), sound: false, at: seen.as_nanos() }
    }

    fn at(&self) -> Instant {
        Instant::from_nanos(self.at)
    }

    fn is_of_late(&self, now: Instant) -> bool {
        self.at() <= now && now.since(self.at()) < LIFE
    }
}

impl VerdictPage {
    /// True if the store at this place passed the check in the last day, without a breach since.
    pub(super) fn is_sound(&self, place: &str, now: Instant) -> bool {
        self.0.get(place).is_some_and(|verdict| verdict.sound && verdict.is_of_late(now))
    }
}

impl Page for VerdictPage {
    type Entry = Verdict;

    const PREFIX: &'static str = "sound-";

    fn head(domain: &Domain) -> impl Serialize {
        VerdictHead { verdicts: "tenure", format: FORMAT, check: check::CHECK, domain: domain.to_string() }
    }

    fn entries(&self) -> impl Iterator<Item = &Verdict> {
        self.0.values()
    }

    /// Takes in a verdict, unless a later one is known. A breach during a check voids the check.
    fn add(&mut self, verdict: Verdict, now: Instant) {
        let order = |verdict: &Verdict| (verdict.at, !verdict.sound);
        let is_later = self.0.get(&verdict.place).is_none_or(|known| order(known) < order(&verdict));
        if is_later && verdict.place.len() <= PLACE_MAX {
            self.0.insert(verdict.place.clone(), verdict);
        }
        self.0.retain(|_, verdict| verdict.is_of_late(now));
        while self.0.len() > PLACES_MAX {
            let oldest =
                self.0.values().min_by_key(|verdict| verdict.at).map(|verdict| verdict.place.clone());
            self.0.remove(&oldest.expect("there are many"));
        }
    }
}

const FORMAT: u32 = 1;

/// Validity of a verdict. Servers are upgraded, and addresses change.
const LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of stores.
const PLACES_MAX: usize = 64;

/// Maximum length of a place. A longer one is not stored.
const PLACE_MAX: usize = 2048;
