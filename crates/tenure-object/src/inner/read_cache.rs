use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tenure_store::{Key, Version};

/// The values read last, for a few keys, so that a read of an unchanged object transfers no value.
///
/// The cache is never an answer by itself: each read sends a request, and the server reports that nothing has changed.
#[derive(Debug, Default)]
pub(super) struct ReadCache(Mutex<CacheState>);

/// A value as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachedValue {
    pub(super) value: Bytes,
    pub(super) version: Version,
    /// The ETag that the server sent with it, for the condition of the next read.
    pub(super) etag: String,
}

/// A read in progress. The cache does not keep its result if a write happens during it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadTicket(u64);

/// A write in progress. The cache forgets every value read before the end of the write, whatever its result.
#[derive(Debug)]
pub(super) struct WriteUnderWay<'a> {
    cache: &'a ReadCache,
    key: &'a Key,
}

#[derive(Debug, Default)]
struct CacheState {
    /// The slot that was used last is at the end.
    slots: VecDeque<CacheSlot>,
    begun: u64,
}

#[derive(Debug)]
struct CacheSlot {
    key: Key,
    begun: ReadTicket,
    body: Option<CachedValue>,
}

impl ReadCache {
    /// Begins a read of this key. Returns the cached value, if there is one.
    pub(super) fn begin(&self, key: &Key) -> (ReadTicket, Option<CachedValue>) {
        let mut state = self.state();
        let slot = match state.slots.iter().position(|slot| slot.key == *key) {
            Some(at) => state.slots.remove(at).expect("it is there"),
            None => CacheSlot { key: key.clone(), begun: state.begin(), body: None },
        };
        let answer = (slot.begun, slot.body.clone());
        state.slots.push_back(slot);
        if state.slots.len() > KEYS_MAX {
            state.slots.pop_front();
        }
        answer
    }

    /// Stores the result of this read.
    pub(super) fn remember(&self, begun: ReadTicket, body: &CachedValue) {
        if body.value.len() > VALUE_MAX {
            return;
        }
        if let Some(slot) = self.state().slots.iter_mut().find(|slot| slot.begun == begun) {
            slot.body = Some(body.clone());
        }
    }

    /// Forgets the value of this key, and the results of reads of it that are in progress.
    pub(super) fn forget(&self, key: &Key) {
        self.state().slots.retain(|slot| slot.key != *key);
    }

    /// Begins a write of this key.
    pub(super) fn writing<'a>(&'a self, key: &'a Key) -> WriteUnderWay<'a> {
        self.forget(key);
        WriteUnderWay { cache: self, key }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    fn begin(&mut self) -> ReadTicket {
        self.begun += 1;
        ReadTicket(self.begun)
    }
}

impl Drop for WriteUnderWay<'_> {
    fn drop(&mut self) {
        self.cache.forget(self.key);
    }
}

/// Maximum number of cached keys. A contender that waits for more keys transfers their values each time.
const KEYS_MAX: usize = 64;

/// Maximum size of a cached value. Records have a few hundred bytes; this allows for large values of users.
const VALUE_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::parse(name).unwrap()
    }

    fn body(text: &str) -> CachedValue {
        CachedValue {
            value: Bytes::copy_from_slice(text.as_bytes()),
            version: Version::new(text),
            etag: text.to_owned(),
        }
    }

    fn read(cache: &ReadCache, name: &str) -> Option<CachedValue> {
        let (begun, before) = cache.begin(&key(name));
        cache.remember(begun, &body(name));
        before
    }

    #[test]
    fn what_was_read_is_remembered_until_it_is_forgotten() {
        let cache = ReadCache::default();
        assert_eq!(read(&cache, "a"), None);
        assert_eq!(read(&cache, "a"), Some(body("a")));
        assert_eq!(read(&cache, "b"), None);
        cache.forget(&key("a"));
        assert_eq!((read(&cache, "a"), read(&cache, "b")), (None, Some(body("b"))));
    }

    #[test]
    fn a_read_that_meets_a_write_is_not_remembered() {
        let cache = ReadCache::default();
        let (a, b) = (key("a"), key("b"));
        let (before, _) = cache.begin(&a);
        let writing = cache.writing(&a);
        cache.remember(before, &body("before the write"));
        assert_eq!(cache.begin(&a).1, None);
        let (during, _) = cache.begin(&a);
        let (other, _) = cache.begin(&b);
        cache.remember(during, &body("during the write"));
        drop(writing);
        cache.remember(during, &body("during the write"));
        cache.remember(other, &body("another key"));
        assert_eq!(cache.begin(&a).1, None, "the first read after a write is whole");
        assert!(cache.begin(&b).1.is_some());
    }

    #[test]
    fn the_memory_is_bounded_in_keys_and_bytes() {
        let cache = ReadCache::default();
        for number in 0..KEYS_MAX {
            assert_eq!(read(&cache, &format!("k{number}")), None);
        }
        assert!(read(&cache, "k0").is_some(), "and is used last now");
        assert_eq!(read(&cache, "one-more"), None);
        assert!(read(&cache, "k0").is_some());
        assert_eq!(read(&cache, "k1"), None, "it was the oldest");
        let (begun, _) = cache.begin(&key("large"));
        let large = CachedValue { value: vec![b'x'; VALUE_MAX + 1].into(), ..body("large") };
        cache.remember(begun, &large);
        assert_eq!(cache.begin(&key("large")).1, None);
    }
}
