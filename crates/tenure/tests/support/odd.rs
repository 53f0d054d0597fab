//! A memory store with bugs of a third-party store.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tenure::store::Memory;
use tenure_store::{
    BoxFuture, BoxStream, Expect, Guarantees, Identity, Key, Prefix, Put, Reading, Store, StoreError,
};

type Hook = Arc<dyn Fn() + Send + Sync>;
type Watch = Arc<dyn Fn(&Memory, &Prefix) -> Option<BoxStream<'static, ()>> + Send + Sync>;

/// Does something odd at every read, write or watch; otherwise it behaves like the memory store.
#[derive(Clone)]
pub(crate) struct Odd {
    memory: Memory,
    at_get: Hook,
    at_put: Hook,
    watch: Watch,
}

impl Odd {
    pub(crate) fn new(memory: &Memory) -> Self {
        let nothing: Hook = Arc::new(|| {});
        let watch: Watch = Arc::new(|memory, prefix| memory.watch(prefix));
        Self { memory: memory.clone(), at_get: Arc::clone(&nothing), at_put: nothing, watch }
    }

    pub(crate) fn at_get(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.at_get = Arc::new(hook);
        self
    }

    pub(crate) fn at_put(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.at_put = Arc::new(hook);
        self
    }

    pub(crate) fn watch(
        mut self,
        watch: impl Fn(&Memory, &Prefix) -> Option<BoxStream<'static, ()>> + Send + Sync + 'static,
    ) -> Self {
        self.watch = Arc::new(watch);
        self
    }
}

impl fmt::Debug for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Odd")
    }
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("odd:")
    }
}

impl Store for Odd {
    fn guarantees(&self) -> Guarantees {
        self.memory.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        (self.at_get)();
        self.memory.get(key)
    }

    fn put<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Put, StoreError>> {
        (self.at_put)();
        self.memory.put(key, value, expect)
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.memory.list(prefix)
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        (self.watch)(&self.memory, prefix)
    }

    fn identity(&self) -> Identity {
        self.memory.identity()
    }
}
