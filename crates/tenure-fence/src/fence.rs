use crate::{FenceError, FencingToken};

/// A resource that checks the token of every write, **atomically with the write**.
///
/// # Duties
///
/// * The resource keeps a mark: the greatest token that it has admitted, with the name of its lease. The mark is as durable
///   as the data of the resource, and nothing lowers it while the data stays.
/// * The check, the write and the new mark are one atomic step. A check before the write is not enough: the writer may be
///   paused between the two.
/// * [`FencingToken::check`] is the rule: a smaller token is refused with [`FenceError::Stale`], an equal one is admitted.
/// * [`FenceError::Unknown`] if the write may have been applied, or may still be. Every other error means that nothing was
///   written.
/// * A value that this fence does not understand is never overwritten: [`FenceError::Foreign`].
///
/// The crate's feature `suite` has the property test that a fence must pass.
///
/// ```
/// use std::sync::Mutex;
///
/// use tenure_fence::{Fence, FenceError, FencingToken};
///
/// /// A total in the memory of this process.
/// #[derive(Default)]
/// struct Total(Mutex<(Option<FencingToken>, u64)>);
///
/// impl Fence for Total {
///     type Write<'w> = u64;
///     type Written = u64;
///
///     async fn write(&self, token: &FencingToken, amount: u64) -> Result<u64, FenceError> {
///         let mut locked = self.0.lock().unwrap();
///         token.check("the total", locked.0.as_ref())?;
///         *locked = (Some(token.clone()), locked.1 + amount);
///         Ok(locked.1)
///     }
/// }
/// ```
pub trait Fence: Sync {
    /// What is written: a value, commands, or the transaction to be fenced.
    type Write<'w>: Send
    where
        Self: 'w;
    /// The answer to an admitted write.
    type Written: Send;

    /// Writes under this token, unless a newer one has been there.
    fn write<'w>(
        &'w self,
        token: &'w FencingToken,
        write: Self::Write<'w>,
    ) -> impl Future<Output = Result<Self::Written, FenceError>> + Send;
}

/// A fence that can be raised without a write.
///
/// A new holder seals the resource first. From then on, every write of an earlier holder is refused, also one that was
/// already sent. Without it, that is so only after the first write of the new holder.
pub trait Seal: Sync {
    /// Raises the fence to this token, and changes no value. Returns after the fence is durable.
    fn seal<'w>(&'w self, token: &'w FencingToken) -> impl Future<Output = Result<(), FenceError>> + Send;
}
