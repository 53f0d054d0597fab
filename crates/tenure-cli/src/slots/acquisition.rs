use std::time::Duration;

use serde_json::json;
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, Error, ErrorKind, GroupFull, Key, Lease, Slots};

use crate::duration;
use crate::exit::Failure;
use crate::output::plain;
use crate::progress::{Importance, Notice, ProgressOutput};
use crate::wait_limit::WaitLimit;

/// The acquisition of a slot by a command, which reports the reason while it waits.
#[derive(Debug)]
pub(crate) struct SlotAcquisition<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) group: &'a Key,
    /// URL of the store, for messages.
    pub(crate) url: &'a str,
    pub(crate) progress: ProgressOutput,
    pub(crate) wait: WaitLimit,
    /// True if only the exit code reports that the group is full.
    pub(crate) quiet: bool,
    /// The exit code for that case.
    pub(crate) conflict: u8,
}

impl SlotAcquisition<'_> {
    /// Acquires a slot. The flag is true if that required waiting.
    pub(crate) async fn acquire(&self, slots: Slots) -> Result<(Lease, bool), Failure> {
        let first = tokio::select! {
            granted = slots.clone().try_acquire() => granted,
            limit = self.first_try_over() => Err(self.silent_store(limit)),
        };
        let (granted, waited) = match first {
            Err(error)
                if !self.wait.is_over()
                    && matches!(error.kind(), ErrorKind::Held | ErrorKind::Unavailable) =>
            {
                self.say_waiting(&error);
                let slots = match self.wait.remaining() {
                    // Zero would mean one more attempt, which may take longer than the wait.
                    Some(remaining) => slots.wait(remaining.max(Duration::from_millis(1))),
                    None => slots,
                };
                (slots.acquire().await, true)
            }
            granted => (granted, false),
        };
        match granted {
            Ok(slot) => Ok((slot.into_lease(), waited)),
            Err(error) if error.kind() == ErrorKind::Held && self.quiet => {
                Err(Failure::silent(self.conflict))
            }
            Err(error) if error.kind() == ErrorKind::Held => {
                let next = if self.wait.allows_waiting() {
                    "try again later, or wait longer"
                } else {
                    "try again later, or wait for a slot with --wait DURATION"
                };
                Err(Failure::new(self.conflict, format!("{}: {next}", self.situation(&error))))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Completes with the limit when the first attempt may take no longer: when the wait is over. The first grant of a
    /// slot, and the size of a new group, wait for the store's clock, which no wait shortens.
    async fn first_try_over(&self) -> Duration {
        let limit = self.wait.over().await;
        let tick = self.coordinator.guarantees().clock_tick;
        BootClock::new().sleep_until(BootClock::new().now() + 5 * tick).await;
        limit
    }

    fn silent_store(&self, limit: Duration) -> Error {
        let (group, url, limit) = (self.group, self.url, duration::exact(limit));
        let sentence = format!(
            "no slot of {group} on {url} could be granted within --wait {limit}, because the store does not answer: \
             check that the store runs and can be reached, or wait longer"
        );
        Error::new(ErrorKind::Unavailable, sentence)
    }

    /// The reason why no slot is granted.
    fn situation(&self, error: &Error) -> String {
        let (group, url) = (self.group, self.url);
        match GroupFull::of(error) {
            Some(full) if full.slots == 1 => {
                format!("the slot of {group} on {url} is held: {}", plain(&full.to_string()))
            }
            Some(full) => {
                format!("all {} slots of {group} on {url} are held: {}", full.slots, plain(&full.to_string()))
            }
            None => error.to_string(),
        }
    }

    fn say_waiting(&self, error: &Error) {
        let limit = match self.wait.given() {
            Some(limit) => format!("for at most {}", duration::exact(limit)),
            None => "without limit".to_owned(),
        };
        let holders = GroupFull::of(error).map(|full| {
            let holders = full.holders.iter().map(|held| {
                json!({
                    "slot": held.index,
                    "holder": held.holder(),
                    "token": held.record.token.get(),
                    "left_ms": duration::millis_up(held.remaining.at_most),
                })
            });
            holders.collect::<Vec<_>>()
        });
        self.progress.say(&Notice {
            name: "waiting",
            fields: json!({ "group": self.group.as_str(), "holders": holders }),
            sentence: format!("waiting {limit}: {}", self.situation(error)),
            importance: Importance::Interactive,
        });
    }
}
