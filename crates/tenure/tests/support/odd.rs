//! A memory store with bugs of a third-party store.

use std::fmt;
use std::sync::Arc;

use tenure::store::Memory;
use tenure_store::{
    BoxFuture, BoxStream, Guarantees, Identity, Key, Prefix, Put, Reading, Store, StoreError, Write,
};

type Hook = Arc<dyn Fn() + Send + Sync>;
type Failure = Arc<dyn Fn() -> Option<StoreError> + Send + Sync>;
type WriteHook = Arc<dyn Fn(&Key, &Write) -> Option<StoreError> + Send + Sync>;
type Watch = Arc<dyn Fn(&Memory, &Prefix) -> Option<BoxStream<'static, ()>> + Send + Sync>;

/// Does something odd at every read, write or watch; otherwise it behaves like the memory store.
#[derive(Clone)]
pub(crate) struct Odd {
    memory: Memory,
    at_get: Hook,
    get_failure: Failure,
    at_write: WriteHook,
    watch: Watch,
}

impl Odd {
    pub(crate) fn new(memory: &Memory) -> Self {
        let watch: Watch = Arc::new(|memory, prefix| memory.watch(prefix));
        Self {
            memory: memory.clone(),
            at_get: Arc::new(|| {}),
            get_failure: Arc::new(|| None),
            at_write: Arc::new(|_, _| None),
            watch,
        }
    }

    pub(crate) fn at_get(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.at_get = Arc::new(hook);
        self
    }

    /// Fails a read for which this returns an error.
    pub(crate) fn get_failure(
        mut self,
        hook: impl Fn() -> Option<StoreError> + Send + Sync + 'static,
    ) -> Self {
        self.get_failure = Arc::new(hook);
        self
    }

    /// The hook may answer the write with an error; then it is not sent.
    pub(crate) fn at_write(
        mut self,
        hook: impl Fn(&Key, &Write) -> Option<StoreError> + Send + Sync + 'static,
    ) -> Self {
        self.at_write = Arc::new(hook);
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
        match (self.get_failure)() {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.memory.get(key),
        }
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> BoxFuture<'a, Result<Put, StoreError>> {
        match (self.at_write)(key, &write) {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.memory.write(key, write),
        }
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
