use std::sync::Arc;
use std::time::Duration;

use tenure_core::Timing;
use tenure_core::election::{HealthState, HealthWatch};
use tokio::sync::watch;

use super::health_check::HealthCheck;
use super::seat::Seat;
use crate::clock::{Clock, Instant};
use crate::host::workers::Workers;
use crate::keeper::{Command, Connection};

/// Calls a health check again and again, and resigns when it fails for too long.
///
/// It runs on the keeper's runtime, and the check on a thread of its own: neither a blocked executor nor a check that hangs
/// keeps an unhealthy leader leading.
pub(super) struct HealthMonitor {
    check: HealthCheck,
    interval: Duration,
    clock: Arc<dyn Clock>,
    workers: Arc<Workers>,
    watch: HealthWatch,
    seat: Arc<Seat>,
    state: watch::Sender<HealthState>,
}

impl HealthMonitor {
    /// Starts to check. It stops when the last receiver is dropped.
    pub(super) fn start(
        check: HealthCheck,
        timing: &Timing,
        connection: &Connection,
        seat: Arc<Seat>,
    ) -> watch::Receiver<HealthState> {
        let clock = Arc::clone(&connection.clock);
        let now = clock.now();
        let watch = HealthWatch::new(check.limit, now);
        let (state, states) = watch::channel(watch.state(now));
        let interval = timing.period().min(check.limit / 4).max(INTERVAL_MIN);
        let workers = Arc::new(Workers::new());
        let monitor = Self { check, interval, clock, workers, watch, seat, state };
        connection.keeper.send(Command::Visit(Box::new(move |_| Box::pin(monitor.run()))));
        states
    }

    async fn run(mut self) {
        let state = self.state.clone();
        tokio::select! {
            biased;
            () = state.closed() => {}
            () = self.watch() => {}
        }
    }

    async fn watch(&mut self) {
        loop {
            let mut next = self.clock.now() + self.interval;
            let (check, workers) = (Arc::clone(&self.check.check), Arc::clone(&self.workers));
            let mut checking = Box::pin(async move { workers.run(move || check()).await });
            let mut answered = false;
            loop {
                let wake = self.wakes_at(next);
                let clock = Arc::clone(&self.clock);
                tokio::select! {
                    biased;
                    // A check that panics is not healthy.
                    healthy = &mut checking, if !answered => {
                        answered = true;
                        self.answered(healthy.unwrap_or(false));
                    }
                    () = clock.sleep_until(wake) => {}
                }
                if self.clock.now() < next {
                    self.publish();
                } else if answered {
                    break;
                } else {
                    // It hangs. A second one is not started beside it.
                    self.answered(false);
                    next = self.clock.now() + self.interval;
                }
            }
        }
    }

    /// The earlier of the next check and the resignation.
    fn wakes_at(&self, next: Instant) -> Instant {
        match self.watch.state(self.clock.now()) {
            HealthState::AtRisk { resigns_at } => next.min(resigns_at),
            HealthState::Healthy | HealthState::Failed => next,
        }
    }

    fn answered(&mut self, healthy: bool) {
        self.watch.answered(healthy, self.clock.now());
        self.publish();
    }

    fn publish(&self) {
        let state = self.watch.state(self.clock.now());
        if state == HealthState::Failed {
            self.seat.give_up();
        }
        self.state.send_if_modified(|now| std::mem::replace(now, state) != state);
    }
}

impl Drop for HealthMonitor {
    /// A leader without its monitor would lead whatever its health is. Without a receiver there is no campaign and no term
    /// of its own any more; the seat may belong to the next campaign.
    fn drop(&mut self) {
        if !self.state.is_closed() {
            self.seat.give_up();
        }
    }
}

/// Shortest time between two checks.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
