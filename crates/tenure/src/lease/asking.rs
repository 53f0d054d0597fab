use std::sync::Arc;

use tenure_store::Key;
use tokio::sync::oneshot;

use super::shared::Shared;
use crate::drive::{Command, Coordinator, LeaseId};
use tenure_core::machine::{self, Ask, Left, Patience, Way};
use tenure_core::Token;
use crate::{Error, Lease};

/// What a keeper is asked for, and who waits for it.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// A lease that it keeps.
    Lease(oneshot::Sender<Result<Arc<Shared>, Error>>),
    /// A term that is left to whoever gets its handle.
    Handle(oneshot::Sender<Result<machine::Handle, Error>>),
    /// The end of a term of another process.
    End(oneshot::Sender<Result<Left, Error>>),
}

/// Asks the keeper of a coordinator, and tells it if nobody waits for the answer any more.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) key: &'a Key,
    pub(crate) ask: Ask,
    pub(crate) witnessed: bool,
    /// The token of the term of another process that this is about.
    pub(crate) token: Option<Token>,
}

impl Asking<'_> {
    pub(crate) async fn for_lease(self) -> Result<Lease, Error> {
        let keeper = self.coordinator.keeper().clone();
        let (id, shared) = self.send(Wanted::Lease, drop).await?;
        Ok(Lease::new(id, keeper, shared))
    }

    pub(crate) async fn for_handle(self) -> Result<machine::Handle, Error> {
        let (keeper, key, ask) = (self.coordinator.keeper().clone(), self.key.clone(), self.ask.clone());
        // Nobody keeps the term, so nobody but its handle can end it.
        let end = move |handle: machine::Handle| {
            if !matches!(ask.way, Way::Resume(_)) {
                let (wanted, _) = oneshot::channel();
                keeper.send(Command::Acquire {
                    id: keeper.next_id(),
                    key,
                    token: Some(handle.token),
                    ask: Box::new(Ask { way: Way::Leave(handle), patience: Patience::Forever, ..ask }),
                    witnessed: false,
                    wanted: Wanted::End(wanted),
                });
            }
        };
        self.send(Wanted::Handle, end).await.map(|(_, handle)| handle)
    }

    pub(crate) async fn for_end(self) -> Result<Left, Error> {
        self.send(Wanted::End, drop).await.map(|(_, left)| left)
    }

    /// `unheard` gets an answer that came when nobody waited for it any more.
    async fn send<T>(
        self,
        wanted: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Wanted,
        unheard: impl FnOnce(T),
    ) -> Result<(LeaseId, T), Error> {
        let keeper = self.coordinator.keeper();
        let id = keeper.next_id();
        let (reply, answer) = oneshot::channel();
        let mut waiting = Waiting { coordinator: self.coordinator, id, answer, unheard: Some(unheard) };
        keeper.send(Command::Acquire {
            id,
            key: self.key.clone(),
            ask: Box::new(self.ask),
            witnessed: self.witnessed,
            token: self.token,
            wanted: wanted(reply),
        });
        let answer = (&mut waiting.answer).await.map_err(|_| self.coordinator.gone_error())?;
        waiting.unheard = None;
        Ok((id, answer?))
    }
}

/// Tells the keeper when nobody waits for the answer any more. What may still land, it vacates.
struct Waiting<'a, T, F: FnOnce(T)> {
    coordinator: &'a Coordinator,
    id: LeaseId,
    answer: oneshot::Receiver<Result<T, Error>>,
    /// None once the answer was heard.
    unheard: Option<F>,
}

impl<T, F: FnOnce(T)> Drop for Waiting<'_, T, F> {
    fn drop(&mut self) {
        let Some(unheard) = self.unheard.take() else { return };
        self.answer.close();
        if let Ok(Ok(answer)) = self.answer.try_recv() {
            unheard(answer);
        }
        self.coordinator.keeper().send(Command::Release { id: self.id, reply: None });
    }
}
