use std::error::Error as _;
use std::time::Duration;

use serde_json::{Value, json};
use tenure::clock::{BootClock, Clock};
use tenure::record::Nonce;
use tenure::{Coordinator, Error, ErrorKind, GroupFull, HeldSlot, Key, Lease, Slot, Slots};

use crate::acquire::{say_conflict, say_logbook_failed};
use crate::duration;
use crate::exit::Failure;
use crate::outlived_commands::{OutlivedCommand, OutlivedCommands};
use crate::output::plain;
use crate::progress::{Importance, Notice, ProgressOutput};
use crate::store_trouble::StoreTrouble;
use crate::wait_limit::WaitLimit;

/// The acquisition of a slot by a command, which reports the reason while it waits.
#[derive(Debug)]
pub(crate) struct SlotAcquisition<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) group: &'a Key,
    /// URL of the store, for messages.
    pub(crate) url: &'a str,
    pub(crate) progress: &'a ProgressOutput,
    pub(crate) wait: WaitLimit,
    /// True if only the exit code reports that the group is full.
    pub(crate) quiet: bool,
    /// The exit code for that case.
    pub(crate) conflict: u8,
    pub(crate) outlived: OutlivedCommands<'a>,
    pub(crate) trouble: StoreTrouble<'a>,
}

impl SlotAcquisition<'_> {
    /// Acquires a slot. The flag is true if that required waiting.
    pub(crate) async fn acquire(&self, slots: Slots) -> Result<(Lease, bool), Failure> {
        let first = tokio::select! {
            granted = slots.clone().try_acquire() => granted,
            limit = self.first_try_over() => Err(self.silent_store(limit)),
        };
        say_logbook_failed(self.coordinator, self.progress);
        let (granted, waited) = match first {
            Err(error)
                if !self.wait.is_over()
                    && matches!(error.kind(), ErrorKind::Held | ErrorKind::Unavailable) =>
            {
                (self.wait_for_slot(slots, &error).await, true)
            }
            granted => (granted, false),
        };
        match granted {
            Ok(slot) => {
                self.outlived.report_taken().await;
                Ok((slot.into_lease(), waited))
            }
            Err(error) if error.kind() == ErrorKind::Held => Err(self.full_failure(&error).await),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a slot after a first attempt with this result.
    async fn wait_for_slot(&self, slots: Slots, first: &Error) -> Result<Slot, Error> {
        self.say_waiting(first);
        let mut said = Vec::new();
        for (command, term) in self.outlived_commands(first).await {
            self.outlived.report_wait(command);
            said.push(term);
        }
        let slots = match self.wait.remaining() {
            // Zero would mean one more attempt, which may take longer than the wait.
            Some(remaining) => slots.wait(remaining.max(Duration::from_millis(1))),
            None => slots,
        };
        let what = format!("a slot of {} on {}", self.group, self.url);
        // The reason for the wait names the error of the store, if there is one.
        let is_said = first.kind() != ErrorKind::Held;
        self.trouble.report_while(&what, is_said, self.outlived.report_while(said, slots.acquire())).await
    }

    async fn full_failure(&self, error: &Error) -> Failure {
        say_conflict(self.progress, json!({ "holders": holders(error) }));
        if self.quiet {
            // A result and not an error: the exit code reports it.
            return Failure::silent(self.conflict);
        }
        let outlived = self.outlived_commands(error).await;
        let mut sentence = self.situation(error);
        for (command, _) in &outlived {
            sentence = format!("{sentence}; {}", command.sentence);
        }
        let next = match (outlived.is_empty(), self.wait.allows_waiting()) {
            (false, _) => "kill it, wait longer, or continue after a time with --orphan-wait DURATION",
            (true, true) => "try again later, or wait longer",
            (true, false) => "try again later, or wait for a slot with --wait DURATION",
        };
        Failure::new(self.conflict, format!("{sentence}: {next}"))
    }

    /// The commands of former holders that are alive although their slots have run out, and their terms.
    async fn outlived_commands(&self, error: &Error) -> Vec<(OutlivedCommand, Nonce)> {
        let mut commands = Vec::new();
        let holders = GroupFull::of(error).map(|full| full.holders.as_slice()).unwrap_or_default();
        for held in holders.iter().filter(|held| held.remaining.at_most.is_zero()) {
            let Ok(key) = Key::group_slot(self.group, held.index) else { continue };
            let found = self.outlived.find(&key, &held.record).await;
            commands.extend(found.map(|command| (command, held.record.term)));
        }
        commands
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
            None => match error.source() {
                Some(source) => format!("{error} ({source})"),
                None => error.to_string(),
            },
        }
    }

    fn say_waiting(&self, error: &Error) {
        let limit = self.wait.words();
        self.progress.say(&Notice {
            name: "waiting",
            fields: json!({ "holders": holders(error) }),
            sentence: format!("standing by {limit}: {}", self.situation(error)),
            importance: Importance::News,
        });
    }
}

/// The holders of a full group, in JSON; `None` if the group is not known to be full.
fn holders(error: &Error) -> Option<Vec<Value>> {
    let holder = |held: &HeldSlot| {
        json!({
            "slot": held.index,
            "holder": held.holder(),
            "token": held.record.token.get(),
            "left_ms": duration::millis_up(held.remaining.at_most),
        })
    };
    GroupFull::of(error).map(|full| full.holders.iter().map(holder).collect())
}
