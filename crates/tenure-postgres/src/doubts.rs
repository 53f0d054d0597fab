use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::Key;

/// The keys whose last write had an unknown outcome.
///
/// Such a write may be committed on the primary and not be on its synchronous standbys. A caller that finds it in a plain
/// read would take it for applied, and a failover would undo it. So the next read of such a key waits for the standbys.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<Doubted>);

#[derive(Debug, Default)]
struct Doubted {
    /// Each key with the number of its latest doubt.
    keys: HashMap<Key, u64>,
    latest: u64,
    /// True if there were too many keys to remember. Then every key is in doubt.
    is_full: bool,
}

/// The doubt about one write. It remains unless it is settled, also if the call is given up.
pub(crate) struct Doubt<'a> {
    doubts: &'a Doubts,
    key: &'a Key,
    is_settled: bool,
}

impl Doubts {
    /// Begins a write of this key.
    pub(crate) fn begin<'a>(&'a self, key: &'a Key) -> Doubt<'a> {
        Doubt { doubts: self, key, is_settled: false }
    }

    /// The number of the doubt about this key, for [`settle`](Self::settle); `None` if there is none.
    pub(crate) fn about(&self, key: &Key) -> Option<u64> {
        let doubted = self.doubted();
        doubted.keys.get(key).copied().or(doubted.is_full.then_some(0))
    }

    /// Ends this doubt about the key: a read has waited for the standbys. A later doubt stays.
    pub(crate) fn settle(&self, key: &Key, number: u64) {
        let mut doubted = self.doubted();
        if doubted.keys.get(key) == Some(&number) {
            doubted.keys.remove(key);
        }
    }

    fn doubted(&self) -> MutexGuard<'_, Doubted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Doubt<'_> {
    /// The write had a definite answer.
    pub(crate) fn settle(mut self) {
        self.is_settled = true;
    }
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let mut doubted = self.doubts.doubted();
        doubted.latest += 1;
        let number = doubted.latest;
        if doubted.keys.len() < DOUBTS_MAX || doubted.keys.contains_key(self.key) {
            doubted.keys.insert(self.key.clone(), number);
        } else {
            doubted.is_full = true;
        }
    }
}

/// Maximum number of keys in doubt that a store remembers.
const DOUBTS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_without_a_definite_answer_is_doubted_until_a_later_read() {
        let doubts = Doubts::default();
        let (key, other) = (Key::parse("k").unwrap(), Key::parse("other").unwrap());
        doubts.begin(&key).settle();
        assert_eq!(doubts.about(&key), None);
        drop(doubts.begin(&key));
        let first = doubts.about(&key).unwrap();
        assert_eq!(doubts.about(&other), None);
        drop(doubts.begin(&key));
        doubts.settle(&key, first);
        let second = doubts.about(&key).expect("the later write is still in doubt");
        doubts.settle(&key, second);
        assert_eq!(doubts.about(&key), None);
    }
}
