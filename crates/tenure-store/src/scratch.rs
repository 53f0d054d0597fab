use crate::{Key, StoreFuture};

/// The removal of Tenure's own keys, on which no lease rests. What tries a store out leaves nothing behind by this.
pub trait Scratch: Send + Sync {
    /// Removes the entry of one of Tenure's own keys, whatever it holds. One that has gone already is no error.
    ///
    /// A store refuses every key that [may not be swept](Key::may_be_swept) as [`Invalid`](crate::Reason::Invalid) before
    /// anything is sent.
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()>;
}
