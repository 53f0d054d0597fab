//! Observations of one key in the order of time, and the violations in them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure::Lease;
use tenure::clock::{BootClock, Clock, Instant};

/// The book of one key. Contenders check their lease while the book is locked, so that the order of the entries is the
/// order of time.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Page>);

#[derive(Debug, Default)]
struct Page {
    entries: Vec<Entry>,
    /// Times at which a contender was seen to hold the lease.
    held: Vec<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An acquire returned this token to this contender.
    Granted { who: usize, token: u64 },
    /// The contender checked its lease, and held it.
    Held { who: usize, token: u64 },
    /// The resource accepted the write.
    Accepted { token: u64 },
    /// The resource had seen a newer token.
    Refused { who: usize, token: u64, while_held: bool },
}

impl Book {
    pub(crate) fn granted(&self, who: usize, lease: &Lease) {
        self.page().entries.push(Entry::Granted { who, token: lease.token().get() });
    }

    /// True if the contender holds the lease at this instant.
    pub(crate) fn look(&self, who: usize, lease: &Lease) -> bool {
        let mut page = self.page();
        let held = lease.check().is_ok();
        if held {
            page.entries.push(Entry::Held { who, token: lease.token().get() });
            page.held.push(BootClock.now());
        }
        held
    }

    /// A write to a resource that checks tokens, whether or not the lease is still held.
    pub(crate) fn write(&self, who: usize, lease: &Lease) {
        let (mut page, token) = (self.page(), lease.token().get());
        let newest = page.entries.iter().rev().find_map(|entry| match entry {
            Entry::Accepted { token } => Some(*token),
            _ => None,
        });
        let entry = if newest.is_some_and(|newest| token < newest) {
            Entry::Refused { who, token, while_held: lease.check().is_ok() }
        } else {
            Entry::Accepted { token }
        };
        page.entries.push(entry);
    }

    /// The first time from this instant on at which a contender was seen to hold the lease.
    pub(crate) fn held_first_after(&self, instant: Instant) -> Option<Instant> {
        let page = self.page();
        page.held.get(page.held.partition_point(|held| *held < instant)).copied()
    }

    /// True if the resource has refused a write.
    pub(crate) fn has_refused(&self) -> bool {
        self.page().entries.iter().any(|entry| matches!(entry, Entry::Refused { .. }))
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.page().entries.clone()
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The violations in a book; empty if there are none.
pub(crate) fn judge(entries: &[Entry]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut granted: HashMap<u64, usize> = HashMap::new();
    let (mut held, mut accepted) = (0, 0);
    for (number, entry) in entries.iter().enumerate() {
        let mut is_wrong = |why: String| wrong.push(format!("entry {number}, {entry:?}: {why}"));
        match *entry {
            Entry::Granted { who, token } => {
                if let Some(other) = granted.insert(token, who) {
                    is_wrong(format!("S1, S5: contender {other} had been granted this token"));
                }
            }
            Entry::Held { who, token } => {
                if granted.get(&token) != Some(&who) {
                    is_wrong("S5: it holds a token that it was never granted".to_owned());
                }
                if token < held {
                    is_wrong(format!("S2: the holder of token {held} had believed before"));
                }
                held = held.max(token);
            }
            Entry::Accepted { token } => {
                if token < accepted {
                    is_wrong(format!("S3: token {accepted} had been accepted"));
                }
                accepted = accepted.max(token);
            }
            Entry::Refused { while_held: true, .. } => {
                is_wrong("S2: it believed, and a newer holder had written".to_owned());
            }
            Entry::Refused { .. } => {}
        }
    }
    wrong
}

#[test]
fn the_judge_detects_every_violation() {
    let granted = |who, token| Entry::Granted { who, token };
    let held = |who, token| Entry::Held { who, token };
    let accepted = |token| Entry::Accepted { token };
    let refused = |who, token, while_held| Entry::Refused { who, token, while_held };
    let good = [
        granted(1, 5),
        held(1, 5),
        accepted(5),
        held(1, 5),
        // The contender learned of this grant late, when it no longer held the lease.
        granted(2, 8),
        granted(3, 7),
        held(2, 8),
        accepted(8),
        refused(1, 5, false),
    ];
    assert_eq!(judge(&good), [""; 0]);
    for bad in [
        &[granted(1, 5), granted(2, 5)][..],
        &[granted(1, 5), granted(1, 5)],
        &[granted(1, 5), granted(2, 6), held(1, 5), held(2, 6), held(1, 5)],
        &[granted(1, 6), held(1, 6), granted(2, 5), held(2, 5)],
        &[held(1, 5)],
        &[granted(1, 5), held(2, 5)],
        &[accepted(6), accepted(5)],
        &[accepted(6), refused(1, 5, true)],
    ] {
        assert_eq!(judge(bad).len(), 1, "{bad:?}");
    }
}
