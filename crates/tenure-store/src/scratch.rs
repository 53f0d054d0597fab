use crate::{Key, StoreFuture};

/// The removal of Tenure's own keys, which no lease depends on. Programs that test a store clean up with it.
pub trait Scratch: Send + Sync {
    /// Removes the entry of one of Tenure's own keys, whatever its value. A missing entry is not an error.
    ///
    /// A store refuses every key that [may not be swept](Key::may_be_swept) as [`Invalid`](crate::Reason::Invalid),
    /// before it sends anything.
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()>;
}
