use futures_util::future::{BoxFuture, select_all};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_core::machine::Patience;
use tenure_core::set::{SetAmbient, SetDenied, SetEffect, SetEvent, SetInput, SetMachine};
use tenure_store::Key;

use super::LeaseSet;
use super::driver::SetDriver;
use super::members::Members;
use crate::host::simulation::{Duty, does};
use crate::keeper::Connection;
use crate::lease::Request;
use crate::{Error, ErrorKind, Lease};

/// Drives the machine of a set until all leases are granted, or none.
///
/// Everything that was granted or requested is a field, so dropping the seeker releases it.
pub(super) struct SetSeeker {
    connection: Connection,
    each: Request,
    machine: SetMachine,
    leases: Vec<Option<Lease>>,
    requested: Option<(usize, BoxFuture<'static, Result<Lease, Error>>)>,
    releases: FuturesUnordered<BoxFuture<'static, usize>>,
    /// The error of the lease that was denied.
    denial: Option<Error>,
}

impl SetSeeker {
    pub(super) fn new(
        connection: Connection,
        keys: Vec<Key>,
        each: Request,
        patience: Patience,
    ) -> Result<Self, Error> {
        let machine = SetMachine::new(keys, patience)?;
        let leases = machine.keys().iter().map(|_| None).collect();
        let (requested, releases, denial) = (None, FuturesUnordered::new(), None);
        Ok(Self { connection, each, machine, leases, requested, releases, denial })
    }

    pub(super) async fn seek(mut self) -> Result<LeaseSet, Error> {
        let (mut input, mut effects) = (SetInput::Start, Vec::new());
        loop {
            let held: Vec<bool> =
                self.leases.iter().map(|lease| lease.as_ref().is_some_and(|it| it.check().is_ok())).collect();
            let ambient = SetAmbient { now: self.connection.clock.now(), held: &held };
            self.machine.step(&ambient, input, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    SetEffect::Acquire { member, patience } => self.request(member, patience),
                    SetEffect::Release { member } => self.release(member),
                    SetEffect::Tell(SetEvent::Granted) => return Ok(self.granted()),
                    SetEffect::Tell(SetEvent::Denied(denied)) => return Err(self.error(denied)),
                    SetEffect::Tell(SetEvent::Lost { .. } | SetEvent::Left) => {
                        unreachable!("a set that was granted is driven elsewhere")
                    }
                }
            }
            input = self.next().await;
        }
    }

    fn request(&mut self, member: usize, patience: Patience) {
        let request = self.each.clone().of_key(self.machine.keys()[member].clone());
        self.requested = Some((member, request.acquire_within(patience).boxed()));
    }

    fn release(&mut self, member: usize) {
        match self.leases[member].take() {
            Some(lease) if !does(Duty::ReleaseDeniedSet) => {
                std::mem::forget(lease);
                self.releases.push(std::future::ready(member).boxed());
            }
            Some(lease) => self.releases.push(
                async move {
                    // If it cannot be vacated it lapses, and so it ends either way.
                    let _ = lease.release().await;
                    member
                }
                .boxed(),
            ),
            None => {
                self.requested = None;
                self.releases.push(std::future::ready(member).boxed());
            }
        }
    }

    /// The next answer, loss or end of a release.
    async fn next(&mut self) -> SetInput {
        let tokens = self.leases.iter().enumerate().filter_map(|(member, lease)| {
            let token = lease.as_ref()?.cancellation_token();
            Some(
                async move {
                    token.cancelled_owned().await;
                    member
                }
                .boxed(),
            )
        });
        let tokens: Vec<_> = tokens.collect();
        let lost = async move {
            if tokens.is_empty() { std::future::pending().await } else { select_all(tokens).await.0 }
        };
        let requested = async {
            match &mut self.requested {
                Some((member, answer)) => (*member, answer.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A loss and a grant may arrive together; the loss counts.
            biased;
            Some(member) = self.releases.next() => SetInput::Left { member },
            member = lost => {
                self.leases[member] = None;
                SetInput::Lost { member }
            }
            (member, answer) = requested => {
                self.requested = None;
                match answer {
                    Ok(lease) => {
                        self.leases[member] = Some(lease);
                        SetInput::Granted { member }
                    }
                    Err(error) => {
                        self.denial = Some(error);
                        SetInput::Denied { member }
                    }
                }
            }
        }
    }

    fn granted(mut self) -> LeaseSet {
        let leases = self.leases.drain(..).flatten().collect();
        let members = Members::new(leases, self.connection.store.clone());
        SetDriver::start(&self.connection, self.machine, members)
    }

    fn error(&mut self, denied: SetDenied) -> Error {
        if let (SetDenied::Member(_), Some(error)) = (denied, self.denial.take()) {
            return error;
        }
        let keys: Vec<_> = self.machine.keys().iter().map(Key::as_str).collect();
        let (keys, store) = (keys.join(", "), &self.connection.store);
        let why = match denied {
            SetDenied::MemberLost(member) => {
                let key = &self.machine.keys()[member];
                format!("lease {key} was lost while the others were being acquired")
            }
            SetDenied::Member(_) | SetDenied::Cancelled => "it is no longer wanted".to_owned(),
        };
        let sentence = format!(
            "the set of leases {keys} on {store} was not granted, and nothing is held: {why}. Try again"
        );
        Error::new(ErrorKind::Unavailable, sentence)
    }
}
