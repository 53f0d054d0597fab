use std::sync::Arc;

use tenure_core::Token;
use tenure_core::machine::{self, AcquireMode, AcquireParams, Left, Patience, Recalled};
use tenure_store::Key;
use tokio::sync::oneshot;

use crate::keeper::{Command, Connection, LastError, LeaseId, ReplyTo};
use crate::{Error, Lease};

/// A request to the keeper. Dropping it cancels the request.
#[derive(Debug)]
pub(crate) struct KeeperCall<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) key: &'a Key,
    pub(crate) params: AcquireParams,
    pub(crate) witnessed: bool,
    /// Token of the term of another process that the request resumes or ends.
    pub(crate) token: Option<Token>,
    /// Receives the error of each failed call.
    pub(crate) failures: Option<Arc<LastError>>,
    /// Sighting of the key by an observer of this process, which counts for the contender.
    pub(crate) recalled: Option<Recalled>,
}

impl KeeperCall<'_> {
    pub(crate) async fn for_lease(self) -> Result<Lease, Error> {
        let keeper = self.connection.keeper.clone();
        let (id, shared) = self.send(ReplyTo::Lease, drop).await?;
        Ok(Lease::new(id, keeper, shared))
    }

    pub(crate) async fn for_handle(self) -> Result<machine::TermRef, Error> {
        let (keeper, key, params) = (self.connection.keeper.clone(), self.key.clone(), self.params.clone());
        // No keeper renews the term, so only its handle can end it.
        let end = move |handle: machine::TermRef| {
            if !matches!(params.mode, AcquireMode::Resume(_)) {
                let (reply, _) = oneshot::channel();
                keeper.send(Command::Acquire {
                    id: keeper.next_id(),
                    key,
                    token: Some(handle.token),
                    params: Box::new(AcquireParams {
                        mode: AcquireMode::Leave(handle),
                        patience: Patience::Forever,
                        ..params
                    }),
                    witnessed: false,
                    failures: None,
                    recalled: None,
                    reply_to: ReplyTo::End(reply),
                });
            }
        };
        self.send(ReplyTo::Handle, end).await.map(|(_, handle)| handle)
    }

    pub(crate) async fn for_end(self) -> Result<Left, Error> {
        self.send(ReplyTo::End, drop).await.map(|(_, left)| left)
    }

    /// Sends the request. `on_late_answer` receives an answer that arrives after the caller has left.
    async fn send<T>(
        self,
        reply_to: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> ReplyTo,
        on_late_answer: impl FnOnce(T),
    ) -> Result<(LeaseId, T), Error> {
        let keeper = &self.connection.keeper;
        let id = keeper.next_id();
        let (reply, answer) = oneshot::channel();
        let mut waiting =
            PendingCall { connection: self.connection, id, answer, on_late_answer: Some(on_late_answer) };
        keeper.send(Command::Acquire {
            id,
            key: self.key.clone(),
            params: Box::new(self.params),
            witnessed: self.witnessed,
            token: self.token,
            failures: self.failures,
            recalled: self.recalled,
            reply_to: reply_to(reply),
        });
        let answer = (&mut waiting.answer).await.map_err(|_| self.connection.gone_error())?;
        waiting.on_late_answer = None;
        Ok((id, answer?))
    }
}

/// Cancels the request when dropped. The keeper vacates what may still land.
struct PendingCall<'a, T, F: FnOnce(T)> {
    connection: &'a Connection,
    id: LeaseId,
    answer: oneshot::Receiver<Result<T, Error>>,
    /// `None` once the answer was received.
    on_late_answer: Option<F>,
}

impl<T, F: FnOnce(T)> Drop for PendingCall<'_, T, F> {
    fn drop(&mut self) {
        let Some(on_late_answer) = self.on_late_answer.take() else { return };
        self.answer.close();
        if let Ok(Ok(answer)) = self.answer.try_recv() {
            on_late_answer(answer);
        }
        self.connection.keeper.send(Command::Release { id: self.id, reply: None });
    }
}
