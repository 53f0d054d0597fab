use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tenure_store::Key;

use super::entry::LogbookEntry;
use crate::clock::{Domain, Instant};
use crate::host::disk::page::{Page, line};
use crate::host::disk::per_boot_files::BYTES_MAX;

/// Sightings of one clock domain: one file.
///
/// ```text
/// {"logbook":"tenure","format":1,"domain":"0f3c…,time:[4026531834]+0.0"}
/// {"store":"file:///srv/leases","key":"backup","version":"5f0c…","nonce":"91b2…","first":8123456789,"last":9123456789,"wanted":true}
/// {"entries":1,"checksum":"91b2c3d4e5f60718"}
/// ```
#[derive(Debug, Default)]
pub(crate) struct LogbookPage {
    entries: BTreeMap<(String, String), LogbookEntry>,
    /// Length of all lines together.
    bytes: usize,
}

#[derive(Serialize)]
struct Head {
    logbook: &'static str,
    format: u32,
    domain: String,
}

impl LogbookPage {
    /// The sighting of a key.
    pub(crate) fn find(&self, store: &str, key: &Key) -> Option<&LogbookEntry> {
        self.entries.get(&(store.to_owned(), key.as_str().to_owned()))
    }

    /// The entry to remove to make room. For an observer: an observed entry that has not been seen for long. For a
    /// contender: observed entries first, then the one that a contender saw longest ago.
    fn least(&self, wanted: bool, now: Instant) -> Option<(String, String)> {
        let may_go =
            |entry: &&LogbookEntry| wanted || (!entry.is_wanted() && now.since(entry.last()) > STALE);
        let least =
            self.entries.values().filter(may_go).min_by_key(|entry| (entry.is_wanted(), entry.last()))?;
        Some((least.store.clone(), least.key.clone()))
    }

    fn take(&mut self, at: &(String, String)) -> Option<LogbookEntry> {
        let entry = self.entries.remove(at)?;
        self.bytes -= length(&entry);
        Some(entry)
    }
}

impl Page for LogbookPage {
    type Entry = LogbookEntry;

    const PREFIX: &'static str = "seen-";

    fn head(domain: &Domain) -> impl Serialize {
        Head { logbook: "tenure", format: FORMAT, domain: domain.to_string() }
    }

    fn entries(&self) -> impl Iterator<Item = &LogbookEntry> {
        self.entries.values()
    }

    /// An observer may read every key, and must not displace an entry that a contender waits for. Among observed
    /// entries the old ones stay, because a listing that is longer than the page would otherwise leave nothing for the
    /// next one.
    fn add(&mut self, entry: LogbookEntry, now: Instant) {
        if !entry.is_plausible(now) {
            return;
        }
        let at = (entry.store.clone(), entry.key.clone());
        let entry = match self.take(&at) {
            Some(mut known) => {
                known.merge(entry);
                known
            }
            None => entry,
        };
        let bytes = length(&entry);
        if bytes > LINE_MAX {
            return;
        }
        while self.entries.len() >= ENTRIES_MAX || self.bytes + bytes > LINES_MAX {
            match self.least(entry.is_wanted(), now) {
                Some(least) => drop(self.take(&least)),
                None => return,
            }
        }
        self.bytes += bytes;
        self.entries.insert(at, entry);
    }
}

fn length(entry: &LogbookEntry) -> usize {
    line(entry).len()
}

const FORMAT: u32 = 1;

/// Maximum number of keys.
const ENTRIES_MAX: usize = 1_000;

/// Room for the entries in a file.
const LINES_MAX: usize = BYTES_MAX - 1024;

/// Longest entry. A longer one is not stored.
const LINE_MAX: usize = 2048;

/// Age after which an observed entry makes room for others.
const STALE: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use tenure_store::Version;

    use super::*;
    use tenure_core::machine::Recalled;
    use tenure_core::record::Nonce;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn seen(key: &str, version: &str, first: u64, last: u64, wanted: bool) -> LogbookEntry {
        let recalled =
            Recalled { version: Version::new(version), nonce: Nonce::from_bits(7), from: at(first) };
        LogbookEntry::new("memory:s", &Key::parse(key).unwrap(), &recalled, at(last), wanted)
    }

    fn first(page: &LogbookPage, key: &str) -> Option<(String, Instant)> {
        let recalled = page.find("memory:s", &Key::parse(key).unwrap())?.to_recall().unwrap();
        Some((recalled.version.as_str().to_owned(), recalled.from))
    }

    fn domain() -> Domain {
        Domain::parse("boot,time:[1]+0.0").unwrap()
    }

    #[test]
    fn a_written_page_reads_back() {
        let mut page = LogbookPage::default();
        page.add(seen("a/b", "v\"\\\n1", 3, 4, true), at(5));
        page.add(seen("c", "v2", 1, 5, false), at(5));
        let text = page.encode(&domain());
        let again = LogbookPage::decode(text.as_bytes(), &domain(), at(5)).unwrap();
        assert_eq!(again.entries, page.entries);
        assert_eq!(again.bytes, page.bytes);
        assert_eq!(again.encode(&domain()), text);
    }

    #[test]
    fn a_version_keeps_its_first_sight_and_the_version_seen_last_wins() {
        let mut page = LogbookPage::default();
        page.add(seen("k", "v1", 3, 4, false), at(9));
        page.add(seen("k", "v1", 5, 6, true), at(9));
        assert_eq!(first(&page, "k"), Some(("v1".into(), at(3))));
        page.add(seen("k", "v2", 5, 5, false), at(9));
        assert_eq!(first(&page, "k"), Some(("v1".into(), at(3))), "it was seen before the other one");
        page.add(seen("k", "v2", 7, 7, false), at(9));
        assert_eq!(first(&page, "k"), Some(("v2".into(), at(7))));
        assert!(page.entries.values().all(|entry| entry.is_wanted()), "the key is still wanted");
    }

    #[test]
    fn ten_thousand_listed_keys_do_not_push_out_a_wanted_one() {
        let mut page = LogbookPage::default();
        page.add(seen("wanted", "v", 1, 1, true), at(1));
        for number in 0..10_000 {
            page.add(seen(&format!("k{number:05}"), "v", 2, 2, false), at(2));
        }
        assert_eq!(page.entries.len(), ENTRIES_MAX);
        assert!(first(&page, "wanted").is_some() && first(&page, "k00000").is_some());
        assert_eq!(first(&page, "k09999"), None, "the old stays");
        page.add(seen("late", "v", 3, 3, true), at(3));
        assert!(first(&page, "late").is_some(), "a wanted key finds room");
        assert!(page.encode(&domain()).len() <= BYTES_MAX);
    }

    #[test]
    fn an_old_observation_makes_room_for_a_new_one() {
        let mut page = LogbookPage::default();
        for number in 0..ENTRIES_MAX {
            page.add(seen(&format!("k{number}"), "v", 2, 2, false), at(2));
        }
        page.add(seen("new", "v", 3_000, 3_000, false), at(3_000));
        assert_eq!(first(&page, "new"), None);
        page.add(seen("new", "v", 4_000, 4_000, false), at(4_000));
        assert!(first(&page, "new").is_some());
    }

    #[test]
    fn of_the_wanted_keys_the_one_seen_longest_ago_goes_first() {
        let mut page = LogbookPage::default();
        for number in 0..ENTRIES_MAX as u64 {
            page.add(seen(&format!("k{number}"), "v", number, number, true), at(5_000));
        }
        page.add(seen("k0", "v", 2_000, 2_000, true), at(5_000));
        page.add(seen("new", "v", 3_000, 3_000, true), at(5_000));
        assert!(first(&page, "k0").is_some() && first(&page, "new").is_some());
        assert_eq!(first(&page, "k1"), None);
    }

    #[test]
    fn long_entries_are_bounded_by_their_bytes_and_too_long_ones_are_left_out() {
        let mut page = LogbookPage::default();
        page.add(seen("long", &"v".repeat(3_000), 1, 1, true), at(1));
        assert_eq!(first(&page, "long"), None);
        for number in 0..ENTRIES_MAX {
            page.add(seen(&format!("k{number}"), &"v".repeat(1_500), 1, 1, true), at(1));
        }
        assert!(page.entries.len() > 100 && page.entries.len() < 200, "{}", page.entries.len());
        assert!(page.encode(&domain()).len() <= BYTES_MAX);
    }

    #[test]
    fn a_page_that_is_damaged_cut_or_of_another_boot_is_not_trusted() {
        let mut page = LogbookPage::default();
        page.add(seen("a", "v1", 3, 4, true), at(5));
        page.add(seen("b", "v2", 1, 5, false), at(5));
        let text = page.encode(&domain());
        for length in 0..text.len() {
            assert!(
                LogbookPage::decode(&text.as_bytes()[..length], &domain(), at(5)).is_none(),
                "cut at {length}"
            );
        }
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1;
            assert!(LogbookPage::decode(&bytes, &domain(), at(5)).is_none(), "damaged at {place}");
        }
        let doubled = format!("{text}{text}");
        assert!(LogbookPage::decode(doubled.as_bytes(), &domain(), at(5)).is_none());
        for other in ["another,time:[1]+0.0", "boot,time:[2]+0.0", "boot,time:[1]+86400.0"] {
            assert!(LogbookPage::decode(text.as_bytes(), &Domain::parse(other).unwrap(), at(5)).is_none());
        }
    }

    #[test]
    fn an_entry_from_the_future_is_left_out_and_the_others_stay() {
        let mut page = LogbookPage::default();
        page.add(seen("future", "v1", 6, 6, true), at(9));
        page.add(seen("lately", "v1", 3, 6, true), at(9));
        page.add(seen("honest", "v2", 1, 5, false), at(9));
        let text = page.encode(&domain());
        let page = LogbookPage::decode(text.as_bytes(), &domain(), at(5)).unwrap();
        assert_eq!(page.entries.len(), 1);
        assert!(first(&page, "honest").is_some());
    }
}
