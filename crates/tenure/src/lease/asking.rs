use std::sync::Arc;

use tenure_store::Key;
use tokio::sync::oneshot;

use super::shared::Shared;
use crate::drive::{Command, Coordinator, LeaseId};
use crate::machine::{self, Ask, Left};
use crate::record::Token;
use crate::{Error, Lease};

/// What a keeper is asked for, and who waits for it.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// A lease that it keeps.
    Lease(oneshot::Sender<Result<Arc<Shared>, Error>>),
    /// A term that is left to whoever gets its handle.
    Handle(oneshot::Sender<Result<(Token, machine::Handle), Error>>),
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
        let (id, shared) = self.send(Wanted::Lease).await?;
        Ok(Lease::new(id, keeper, shared))
    }

    pub(crate) async fn for_handle(self) -> Result<(Token, machine::Handle), Error> {
        self.send(Wanted::Handle).await.map(|(_, handle)| handle)
    }

    pub(crate) async fn for_end(self) -> Result<Left, Error> {
        self.send(Wanted::End).await.map(|(_, left)| left)
    }

    async fn send<T>(
        self,
        wanted: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Wanted,
    ) -> Result<(LeaseId, T), Error> {
        let keeper = self.coordinator.keeper();
        let id = keeper.next_id();
        let guard = Cancel { coordinator: self.coordinator, id, armed: true };
        let (reply, answer) = oneshot::channel();
        keeper.send(Command::Acquire {
            id,
            key: self.key.clone(),
            ask: Box::new(self.ask),
            witnessed: self.witnessed,
            token: self.token,
            wanted: wanted(reply),
        });
        let answer = answer.await.map_err(|_| self.coordinator.gone_error())?;
        guard.disarm();
        Ok((id, answer?))
    }
}

/// Tells the keeper when nobody waits for the answer any more. What may still land, it vacates.
#[derive(Debug)]
struct Cancel<'a> {
    coordinator: &'a Coordinator,
    id: LeaseId,
    armed: bool,
}

impl Cancel<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.coordinator.keeper().send(Command::Release { id: self.id, reply: None });
        }
    }
}
