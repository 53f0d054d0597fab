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
    /// The numbers of the unconfirmed writes of each record, in order. Never empty.
    of: HashMap<String, Vec<u64>>,
    /// The last write when there were too many to remember. From then on, every record counts as one with this write.
    forgotten: Option<u64>,
}

impl UnconfirmedWrites {
    /// Adds a write of this record, before it is sent. Returns its number.
    pub(crate) fn add(&self, name: &str) -> u64 {
        let mut writes = self.lock();
        if writes.of.len() >= RECORDS_MAX && !writes.of.contains_key(name) {
            writes.of = HashMap::new();
            writes.forgotten = Some(writes.last);
        }
        writes.last += 1;
        let number = writes.last;
        writes.of.entry(name.to_owned()).or_default().push(number);
        number
    }

    /// The number of the latest unconfirmed write of this record.
    pub(crate) fn of(&self, name: &str) -> Option<u64> {
        let writes = self.lock();
        writes.of.get(name).and_then(|numbers| numbers.last().copied()).or(writes.forgotten)
    }

    /// Removes a confirmed write, and all earlier ones of the record: the replicas have its latest state.
    pub(crate) fn confirm(&self, name: &str, number: u64) {
        self.retain(name, |of| of > number);
    }

    /// Removes a write that certainly had no effect. Earlier ones of the record stay.
    pub(crate) fn cancel(&self, name: &str, number: u64) {
        self.retain(name, |of| of != number);
    }

    fn retain(&self, name: &str, keeps: impl Fn(u64) -> bool) {
        let mut writes = self.lock();
        let Some(numbers) = writes.of.get_mut(name) else { return };
        numbers.retain(|number| keeps(*number));
        if numbers.is_empty() {
            writes.of.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most records to remember. A record stays only if the outcome of its write is unknown, and it was not read since.
const RECORDS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmed_write_does_not_confirm_a_later_one() {
        let writes = UnconfirmedWrites::default();
        let (first, second) = (writes.add("a"), writes.add("a"));
        writes.confirm("a", first);
        assert_eq!((writes.of("a"), writes.of("b")), (Some(second), None));
        writes.confirm("a", second);
        assert_eq!(writes.of("a"), None);
    }

    #[test]
    fn a_write_without_effect_leaves_an_earlier_one_unconfirmed() {
        let writes = UnconfirmedWrites::default();
        let (first, second) = (writes.add("a"), writes.add("a"));
        writes.cancel("a", second);
        assert_eq!(writes.of("a"), Some(first));
        writes.cancel("a", first);
        assert_eq!(writes.of("a"), None);
    }

    #[test]
    fn too_many_to_remember_make_every_record_unconfirmed() {
        let writes = UnconfirmedWrites::default();
        for number in 0..RECORDS_MAX {
            writes.add(&number.to_string());
        }
        assert_eq!(writes.of("unwritten"), None);
        writes.add("one more");
        assert!(writes.of("0").is_some() && writes.of("unwritten").is_some());
        assert_eq!(writes.lock().of.len(), 1);
    }
}
