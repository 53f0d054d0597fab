use tenure_store::BoxFuture;

/// One kind of lock in a comparison.
#[derive(Debug, Clone, Copy)]
pub struct LockKind {
    /// Name in the table.
    pub name: &'static str,
    /// True if the server may grant the lock to another holder once the ttl has passed since the last renewal. False if
    /// the lock lasts as long as its connection.
    pub has_ttl: bool,
}

/// A lock on a connection of its own, as its library offers it.
pub trait ComparedLock: Send {
    /// Waits for the lock in the library's own way.
    fn acquire(&mut self) -> BoxFuture<'_, ()>;

    /// Renews the lock. `None` if the library has no renewal, `Some(false)` if the lock is lost.
    fn renew(&mut self) -> BoxFuture<'_, Option<bool>>;

    /// Releases the lock.
    fn release(&mut self) -> BoxFuture<'_, ()>;

    /// Answer of the holder's check that sends nothing to the server; `None` if the library has no such check.
    fn believes(&self) -> Option<bool> {
        None
    }

    /// Fencing token of the present grant, if the library has one.
    fn token(&self) -> Option<u64> {
        None
    }
}

/// A lock that is being opened.
pub type OpenedLock<'a> = BoxFuture<'a, Box<dyn ComparedLock>>;
