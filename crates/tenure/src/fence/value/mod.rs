//! Fenced values: content in a store, with the mark of its fence.

mod call;
mod envelope;
mod flaw;
mod header;
mod machine;
mod memory;
mod pace;
mod route;
mod rules;
#[cfg(test)]
mod simulation;
mod state;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tenure_store::{Key, Store};

use super::{Fence, FenceError, FencingToken, Seal};
use crate::keeper::Connection;
use crate::trust::Trust;
use envelope::ValueEnvelope;
use flaw::ValueFlaw;
use header::Header;
use machine::Act;
use route::Route;
use state::ValueState;

/// A value in a store that checks the token of every write. Cheap to clone; clones share what they have seen.
///
/// The value is one entry of the store: a line of JSON with the greatest admitted token, and the content. Each write replaces
/// exactly the entry that its token was checked against, so the store refuses the write of a holder that was paused between
/// the check and the write. `docs/concepts/fenced-values.md` has the format.
///
/// ```
/// use tenure::{Coordinator, ErrorKind, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let coordinator = Coordinator::connect(Memory::new()).await?;
/// let report = coordinator.fenced("report")?;
///
/// let lease = coordinator.lease("billing/nightly")?.acquire().await?;
/// // The first act of a new holder: from now on, no write of an earlier holder is admitted.
/// lease.fenced(&report).seal().await?;
/// lease.fenced(&report).write("total: 7".into()).await?;
///
/// let (token, content) = report.read().await?.expect("it was written");
/// assert_eq!((token.token(), &content[..]), (lease.token(), &b"total: 7"[..]));
///
/// // A holder that comes later has a greater token. Then the writes of the first one are refused.
/// let newer = tenure::fence::FencingToken::new(lease.key().clone(), lease.token().next().unwrap())?;
/// report.seal(&newer).await?;
/// let refused = lease.fenced(&report).write("late".into()).await.unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::Fenced);
/// # Ok(())
/// # }
/// ```
///
/// # Calls
///
/// The first write of a handle is one read and one write. Each further write is one write, as long as no other handle has
/// written. A seal is one read and one write, and one read if the mark has this token already.
///
/// # Cancellation
///
/// A dropped future begins no further call on the store. A write that was sent may still be applied.
#[derive(Clone)]
pub struct FencedValue {
    state: Arc<ValueState>,
    route: Route,
}

impl FencedValue {
    /// The value at exactly this key of a store, without a coordinator. Its futures must be polled inside a tokio runtime
    /// that has io and time enabled.
    ///
    /// `Coordinator::fenced(name)` uses the key [`Key::fenced_value`] of the name. The caller must trust the store: a
    /// coordinator checks a networked store when it connects, and this function sends nothing.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tenure::{Key, fence::FencedValue, store::Memory};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let value = FencedValue::on(Arc::new(Memory::new()), Key::fenced_value(&Key::parse("report")?)?);
    /// value.write(&"billing/nightly=7".parse()?, "total: 7").await?;
    /// assert!(value.write(&"billing/nightly=6".parse()?, "late").await.unwrap_err().is_stale());
    /// # Ok(())
    /// # }
    /// ```
    pub fn on(store: Arc<dyn Store>, key: Key) -> Self {
        let state = ValueState::new(key, &store.to_string(), store.guarantees());
        Self { state: Arc::new(state), route: Route::direct(store) }
    }

    pub(crate) fn through(connection: Connection, trust: Arc<Trust>, key: Key) -> Self {
        let state = ValueState::new(key, &connection.store, connection.guarantees);
        Self { state: Arc::new(state), route: Route::Keeper { connection, trust } }
    }

    /// Key of the entry in the store.
    pub fn key(&self) -> &Key {
        &self.state.key
    }

    /// Maximum length of the content, in bytes: what the store holds, without the first line.
    pub fn content_max(&self) -> usize {
        self.state.content_max()
    }

    /// Replaces the content, unless a newer token has been there.
    pub async fn write(&self, token: &FencingToken, content: impl Into<Bytes>) -> Result<(), FenceError> {
        let content = content.into();
        self.state.check_length(content.len())?;
        self.change(token, Act::Write(content)).await
    }

    /// Raises the mark to this token, and keeps the content. An entry without content is created if there is none.
    pub async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        self.change(token, Act::Seal).await
    }

    /// The content, with the token of the write that made it; `None` if there was no write yet.
    ///
    /// The mark may be greater than this token: see [`mark`](Self::mark).
    pub async fn read(&self) -> Result<Option<(FencingToken, Bytes)>, FenceError> {
        Ok(self.look().await?.and_then(|entry| entry.written))
    }

    /// The greatest token that was admitted; `None` if there was no write and no seal yet.
    pub async fn mark(&self) -> Result<Option<FencingToken>, FenceError> {
        Ok(self.look().await?.map(|entry| entry.mark))
    }

    /// Accepts that the entry has a smaller token than before, or is missing: an operator restored the store from a backup,
    /// or removed the entry, and knows that no earlier holder still writes.
    ///
    /// Until then, [`FenceError::WentBack`] is the answer to every call of this handle. Other processes may have seen other
    /// tokens, and are not affected.
    pub fn acknowledge(&self) {
        self.state.with(|memory| (memory.latest, memory.highest) = (None, None));
    }

    async fn change(&self, token: &FencingToken, act: Act) -> Result<(), FenceError> {
        self.state.check_store()?;
        self.route.check_trust(&self.state)?;
        let token = token.clone();
        self.route.run(&self.state, move |call, store| Box::pin(call.change(store, token, act))).await
    }

    /// The mark and the content, from one read; `None` if there is no entry.
    pub(super) async fn look(&self) -> Result<Option<FencedEntry>, FenceError> {
        let entry = self.route.run(&self.state, |call, store| Box::pin(call.look(store))).await?;
        Ok(entry.map(|ValueEnvelope { header, content }| {
            let token = |written| FencingToken::new(header.mark.name().clone(), written).expect("not zero");
            FencedEntry {
                written: header.written.map(|written| (token(written), content)),
                mark: header.mark,
            }
        }))
    }
}

/// The entry of a fenced value.
pub(super) struct FencedEntry {
    /// The greatest admitted token.
    pub(super) mark: FencingToken,
    /// The content, with the token of its write.
    pub(super) written: Option<(FencingToken, Bytes)>,
}

impl Fence for FencedValue {
    type Write<'w> = Bytes;
    type Written = ();

    async fn write(&self, token: &FencingToken, content: Bytes) -> Result<(), FenceError> {
        self.write(token, content).await
    }
}

impl Seal for FencedValue {
    async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        self.seal(token).await
    }
}

impl fmt::Debug for FencedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FencedValue").field(&self.state.resource).finish()
    }
}
