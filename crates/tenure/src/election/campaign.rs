use std::future::pending;
use std::sync::Arc;

use tenure_core::election::{CampaignEffect, CampaignInput, Campaigner, HealthState, TermEnd};
use tokio::sync::watch;

use super::seat::Seat;
use super::{Leaders, Term};
use crate::clock::Instant;
use crate::host::entropy::Entropy;
use crate::keeper::{Connection, LastError, shut_down_error};
use crate::{Error, Lease, Request};

/// A campaign: wins terms again and again. Dropping it stops the campaign, and not the present term.
///
/// Between two calls of [`next`](Self::next), the keeper only renews the present term.
#[derive(Debug)]
#[must_use = "a campaign does nothing until next() is awaited"]
pub struct Campaign {
    request: Request,
    connection: Connection,
    campaigner: Campaigner,
    seat: Arc<Seat>,
    failures: Arc<LastError>,
    health: Option<watch::Receiver<HealthState>>,
    /// Observes the leader while the others try first.
    leaders: Leaders,
    next_act: NextAct,
}

/// The present act. It is done again if the future of [`Campaign::next`] was dropped.
#[derive(Debug)]
enum NextAct {
    Start,
    Acquire,
    /// Wait until this instant, or until the leader is another one.
    Wait {
        until: Instant,
        observes: bool,
    },
    Recover,
    /// Wait for the end of this term.
    Lead(Arc<Lease>),
}

/// Parts of an election that a campaign uses.
pub(super) struct CampaignParts {
    pub(super) request: Request,
    pub(super) campaigner: Campaigner,
    pub(super) seat: Arc<Seat>,
    pub(super) failures: Arc<LastError>,
    pub(super) health: Option<watch::Receiver<HealthState>>,
    pub(super) leaders: Leaders,
}

impl Campaign {
    pub(super) fn new(parts: CampaignParts) -> Self {
        let CampaignParts { request, campaigner, seat, failures, mut health, leaders } = parts;
        // The first state counts as a change.
        health.iter_mut().for_each(watch::Receiver::mark_changed);
        let connection = request.connection().clone();
        let next_act = NextAct::Start;
        Self { request, connection, campaigner, seat, failures, health, leaders, next_act }
    }

    /// Waits until this node leads, and returns the term.
    ///
    /// First waits until the previous term is over. If this node released it, resigned or was revoked, it lets the others
    /// try first: it waits for one poll period, 3/8 of the ttl, unless it sees another leader. After a loss it campaigns
    /// at once.
    ///
    /// If the store does not answer, the call tries again without limit, with growing pauses:
    /// [`Election::last_error`](super::Election::last_error) shows the error. The call fails if only an operator can help: the error is
    /// [invalid](crate::ErrorKind::Invalid), [unsupported](crate::ErrorKind::Unsupported),
    /// [misconfigured](crate::ErrorKind::Misconfigured) or
    /// [corrupt](crate::ErrorKind::Corrupt), or the coordinator is shut down. The campaign continues with the next call, after a pause.
    ///
    /// Cancel-safe: dropping the future leaves nothing held, and the next call continues.
    pub async fn next(&mut self) -> Result<Term, Error> {
        loop {
            if let Some(term) = self.act().await? {
                return Ok(term);
            }
        }
    }

    async fn act(&mut self) -> Result<Option<Term>, Error> {
        match &self.next_act {
            NextAct::Start => {
                if let Some(health) = &mut self.health {
                    let state = *health.borrow_and_update();
                    self.step(CampaignInput::Health(state));
                }
                self.step(CampaignInput::Start);
            }
            NextAct::Acquire => {
                let acquired = tokio::select! {
                    biased;
                    health = next_health(&mut self.health) => Err(health),
                    acquired = self.request.clone().acquire() => Ok(acquired),
                };
                match acquired {
                    Ok(Ok(lease)) => return Ok(Some(self.granted(lease))),
                    Ok(Err(error)) => self.failed(error)?,
                    Err(health) => drop(self.step(CampaignInput::Health(health))),
                }
            }
            NextAct::Wait { until, observes } => {
                let (until, observes) = (*until, *observes);
                let closing = self.connection.keeper.closing();
                tokio::select! {
                    biased;
                    () = closing.cancelled() => return Err(self.shut_down()),
                    slept = self.connection.sleep_until(until) => {
                        slept?;
                        self.step(CampaignInput::Wake);
                    }
                    leader = self.leaders.next(), if observes => {
                        // The acquire after the wait reports an error.
                        if let Ok(Some(leader)) = leader {
                            let (token, holder) = (leader.token, leader.name());
                            self.step(CampaignInput::SawLeader { token, holder });
                        }
                    }
                    health = next_health(&mut self.health) => drop(self.step(CampaignInput::Health(health))),
                }
            }
            NextAct::Recover => {
                let Some(health) = &mut self.health else { return Err(self.connection.gone_error()) };
                let closing = self.connection.keeper.closing();
                tokio::select! {
                    biased;
                    () = closing.cancelled() => return Err(self.shut_down()),
                    changed = health.changed() => changed.map_err(|_| self.connection.gone_error())?,
                }
                let state = *health.borrow_and_update();
                self.step(CampaignInput::Health(state));
            }
            NextAct::Lead(lease) => {
                let end = TermEnd::from(&lease.lost().await);
                if end != TermEnd::Lost {
                    // The others can try only when the record is vacant.
                    lease.left().await;
                }
                self.step(CampaignInput::Ended(end));
            }
        }
        Ok(None)
    }

    fn shut_down(&self) -> Error {
        shut_down_error(self.request.key(), &self.connection.store)
    }

    fn granted(&mut self, lease: Lease) -> Term {
        let lease = Arc::new(lease);
        self.failures.set(None);
        self.step(CampaignInput::Granted(lease.token()));
        self.next_act = NextAct::Lead(Arc::clone(&lease));
        Term::begin(lease, Arc::clone(&self.seat), self.health.clone())
    }

    fn failed(&mut self, error: Error) -> Result<(), Error> {
        self.failures.set(Some(error.to_string().into()));
        if self.connection.keeper.is_over() || self.step(CampaignInput::Failed(error.kind())) {
            return Err(error);
        }
        Ok(())
    }

    /// Gives the campaigner an input, and sets the next act. True if the caller must know of the error.
    fn step(&mut self, input: CampaignInput<'_>) -> bool {
        let (now, (_, jitter)) = (self.connection.clock.now(), Entropy.step());
        let mut effects = Vec::new();
        self.campaigner.step(now, jitter, input, &mut effects);
        let (mut observes, mut reports) = (false, false);
        for effect in effects {
            match effect {
                CampaignEffect::Acquire => self.next_act = NextAct::Acquire,
                CampaignEffect::Observe => observes = true,
                CampaignEffect::Report => reports = true,
                CampaignEffect::SleepUntil(until) => {
                    let observes = observes || matches!(self.next_act, NextAct::Wait { observes: true, .. });
                    self.next_act = NextAct::Wait { until, observes };
                }
                // The caller has the lease; the acquire was dropped.
                CampaignEffect::Lead(_) | CampaignEffect::Cancel => {}
            }
        }
        if self.campaigner.waits_for_health() {
            self.next_act = NextAct::Recover;
        }
        if !matches!(self.next_act, NextAct::Wait { observes: true, .. }) {
            self.leaders.stop();
        }
        reports
    }
}

/// The next change of the health; never, without a check. If the monitor has ended, the keeper has, too.
async fn next_health(health: &mut Option<watch::Receiver<HealthState>>) -> HealthState {
    if let Some(health) = health
        && health.changed().await.is_ok()
    {
        return *health.borrow_and_update();
    }
    pending().await
}
