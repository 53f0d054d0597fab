//! Users whose credentials are rotated.

use std::time::Duration;

use tenure::Coordinator;

use super::User;
use super::waiting::Waiting;
use crate::Invariant;
use crate::driver::Reached;
use crate::driver::world::world;
use crate::time::{MILLI, SECOND};

impl User {
    /// Acquires with patience while the credentials of the process are wrong: for some seconds, or for long.
    pub(super) async fn outlast_denials(&self, coordinator: &Coordinator) {
        let key = self.key();
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let ttl = world().plan.ttls[0];
        let is_short = world().chance(500);
        let span = if is_short { world().draw(|rng| rng.between(1, DENIED_BRIEFLY)) } else { DENIED_LONG };
        world().rotate_credentials(self.process, span);
        let patience = 2 * DENIED_LONG;
        let request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(patience));
        let denied_at = world().now.get();
        let waiting = Waiting::new(self.process, &key);
        let acquired = request.acquire().await;
        let passed = world().now.get() - denied_at;
        match acquired {
            Ok(lease) => {
                world().reach(Reached::OutlastedDenials);
                let owned = self.own(&lease);
                drop(waiting);
                // A rotation ends early when everything heals.
                if !is_short && passed >= DENIED_LONG && !world().healed.get() {
                    let sentence = format!(
                        "the acquire of {key} by process {} reported no denial in {} s",
                        self.process,
                        passed / SECOND
                    );
                    world().violate(Invariant::L7, sentence);
                }
                drop(lease);
                drop(owned);
            }
            Err(error) if format!("{error}").contains("denied access") => {
                world().reach(Reached::ReportedDenial);
                if is_short {
                    let sentence = format!(
                        "process {} gave up {key} after {} ms of denied answers: {error}",
                        self.process,
                        passed / MILLI
                    );
                    world().violate(Invariant::L4, sentence);
                }
            }
            Err(error) => self.note(2, format_args!("is not granted {key}: {error}")),
        }
    }
}

/// A rotation that a patient contender outlasts: it reports a denial half a minute after the first one, or later.
const DENIED_BRIEFLY: u64 = 25 * SECOND;

/// A rotation that it reports: the last denied answer comes a minute after the first, at most.
const DENIED_LONG: u64 = 80 * SECOND;
