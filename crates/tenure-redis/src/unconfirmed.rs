use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records that this store has written, and that too few replicas have confirmed so far.
///
/// The primary server shows such a record at once, and a failover may lose it. So a read of it counts only when the
/// replicas have confirmed it: otherwise the holder would read its own grant back, and believe it.
#[derive(Debug, Default)]
pub(crate) struct UnconfirmedWrites(Mutex<Writes>);

#[derive(Debug, Default)]
struct Writes {
    last: u64,
    /// The number of the latest write of each record.
    of: HashMap<String, u64>,
}

impl UnconfirmedWrites {
    /// Adds a write of this record, before it is sent. Returns its number.
    pub(crate) fn add(&self, name: &str) -> u64 {
        let mut writes = self.lock();
        writes.last += 1;
        let number = writes.last;
        writes.of.insert(name.to_owned(), number);
        number
    }

    /// The number of the latest unconfirmed write of this record.
    pub(crate) fn of(&self, name: &str) -> Option<u64> {
        self.lock().of.get(name).copied()
    }

    /// Removes a confirmed write, unless a later one of the record was added since.
    pub(crate) fn remove(&self, name: &str, number: u64) {
        let mut writes = self.lock();
        if writes.of.get(name) == Some(&number) {
            writes.of.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmed_write_does_not_confirm_a_later_one() {
        let writes = UnconfirmedWrites::default();
        let (first, second) = (writes.add("a"), writes.add("a"));
        writes.remove("a", first);
        assert_eq!((writes.of("a"), writes.of("b")), (Some(second), None));
        writes.remove("a", second);
        assert_eq!(writes.of("a"), None);
    }
}
