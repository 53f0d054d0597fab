use std::sync::{Arc, Weak};

use futures_util::future::{BoxFuture, select_all};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_core::set::{SetAmbient, SetEffect, SetEvent, SetInput, SetMachine};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::members::Members;
use super::{LeaseSet, ReleaseReply, SetLoss};
use crate::clock::Clock;
use crate::host::simulation::{Duty, does};
use crate::keeper::{Command, Connection};
use crate::{Error, ErrorKind};

/// Drives the machine of a set that is held, on the keeper's runtime: when the first lease is lost, it ends the belief
/// in the set and releases the others, whatever the user's executor does.
pub(super) struct SetDriver {
    machine: SetMachine,
    clock: Arc<dyn Clock>,
    /// The user's set. When that is dropped, all leases are released.
    members: Weak<Members>,
    /// Cancelled when a lease is lost, in the order of the keys.
    losses: Vec<CancellationToken>,
    release: mpsc::UnboundedReceiver<ReleaseReply>,
}

impl SetDriver {
    pub(super) fn start(connection: &Connection, machine: SetMachine, members: Members) -> LeaseSet {
        let members = Arc::new(members);
        let (release, commands) = mpsc::unbounded_channel();
        let driver = Self {
            machine,
            clock: Arc::clone(&connection.clock),
            members: Arc::downgrade(&members),
            losses: members.leases.iter().map(|lease| lease.cancellation_token()).collect(),
            release: commands,
        };
        // If the keeper ends, the driver is dropped with it, and so the belief ends.
        let ended = members.cancelled.clone().drop_guard();
        connection.keeper.send(Command::Visit(Box::new(move |_| {
            Box::pin(async move {
                driver.run().await;
                drop(ended);
            })
        })));
        LeaseSet { members, release }
    }

    async fn run(mut self) {
        let losses = self.losses.iter().map(|token| Box::pin(token.clone().cancelled_owned()));
        let (input, reply) = tokio::select! {
            // A release cancels the tokens of the leases, and must not look like a loss.
            biased;
            Some(reply) = self.release.recv() => (SetInput::Release, Some(reply)),
            (_, member, _) = select_all(losses) => (SetInput::Lost { member }, None),
        };
        if reply.is_none() && !does(Duty::ReleaseRestOfSet) {
            return;
        }
        // The user has dropped the set, and with it the leases.
        let Some(members) = self.members.upgrade() else { return };
        let errors = self.end(&members, input).await;
        if let Some(reply) = reply {
            let _ = reply.send(result(errors, &members));
        }
    }

    /// Gives the machine the input that ends the set, and executes its effects until all leases have ended. The errors
    /// of the releases.
    async fn end(&mut self, members: &Arc<Members>, input: SetInput) -> Vec<Error> {
        let mut releases = FuturesUnordered::<BoxFuture<'static, _>>::new();
        let (mut next, mut effects, mut errors) = (Some(input), Vec::new(), Vec::new());
        while let Some(input) = next {
            let held: Vec<bool> = members.leases.iter().map(|lease| lease.check().is_ok()).collect();
            let ambient = SetAmbient { now: self.clock.now(), held: &held };
            self.machine.step(&ambient, input, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    SetEffect::Tell(SetEvent::Lost { member }) => {
                        if let Some(why) = members.leases[member].lost().now_or_never() {
                            members.latch(SetLoss::new(&members.leases[member], why));
                        }
                    }
                    SetEffect::Release { member } => {
                        let members = Arc::clone(members);
                        let release = async move { (member, members.leases[member].release().await) };
                        releases.push(release.boxed());
                    }
                    SetEffect::Tell(_) | SetEffect::Acquire { .. } => {}
                }
            }
            next = releases.next().await.map(|(member, released)| {
                errors.extend(released.err());
                SetInput::Left { member }
            });
        }
        errors
    }
}

/// The answer to a release.
fn result(errors: Vec<Error>, members: &Members) -> Result<(), Error> {
    let count = errors.len();
    match errors.into_iter().next() {
        None => Ok(()),
        Some(error) if count == 1 => Err(error),
        Some(error) => {
            let of = members.leases.len();
            let sentence =
                format!("{count} of the {of} leases of a set could not be vacated, and have lapsed");
            Err(Error::new(ErrorKind::Unavailable, sentence).because(error))
        }
    }
}
