//! How the lease is got, or not.

use std::time::Duration;

use serde_json::{Value, json};
use tenure::clock::{BootClock, Clock};
use tenure::{Error, Kind, Lease};

use super::running::Running;
use super::voice::{Event, Weight};
use crate::exit::Failure;
use crate::{duration, output};

impl Running<'_> {
    pub(super) async fn acquire(&self) -> Result<Lease, Failure> {
        let mut request = self.coordinator.lease(self.key.as_str())?.timing(self.timing);
        if self.run.strict {
            request = request.strict();
        }
        let mut granted = request.clone().try_acquire().await;
        let waits = !self.run.no_wait && self.run.wait != Some(Duration::ZERO);
        // A store that is busy for a moment is waited for like a holder.
        if let Err(error) = &granted
            && waits
            && matches!(error.kind(), Kind::Held | Kind::Unavailable)
        {
            self.waited.set(true);
            self.say_waiting().await;
            if let Some(limit) = self.run.wait {
                request = request.wait(limit);
            }
            let mut acquiring = std::pin::pin!(request.acquire());
            granted = match error.kind() {
                Kind::Held => acquiring.await,
                _ => tokio::select! {
                    granted = &mut acquiring => granted,
                    () = BootClock::new().sleep_until(BootClock::new().now() + BUSY) => {
                        self.say_unavailable(error);
                        acquiring.await
                    }
                },
            };
        }
        match granted {
            Err(error) if error.kind() == Kind::Held => {
                if self.run.quiet {
                    // It is an answer and no error, and the exit code gives it.
                    return Err(Failure::silent(self.run.conflict_exit_code));
                }
                let next = if waits { "or wait for longer" } else { "or wait for it with --wait DURATION" };
                let sentence = match self.held_by().await {
                    Some((_, sentence)) => format!("{sentence}: try again later, {next}"),
                    None => error.to_string(),
                };
                Err(Failure::new(self.run.conflict_exit_code, sentence))
            }
            granted => Ok(granted?),
        }
    }

    async fn say_waiting(&self) {
        let Some((fields, sentence)) = self.held_by().await else { return };
        let limit = match self.run.wait {
            Some(limit) => format!("for {} at the longest", duration::exact(limit)),
            None => "for as long as it takes".to_owned(),
        };
        self.voice.say(&Event {
            name: "waiting",
            fields,
            sentence: format!("waiting {limit}: {sentence}"),
            weight: Weight::Chat,
        });
    }

    /// A store that stays unusable is no reason to give up, and one to speak: nobody would know why nothing happens.
    fn say_unavailable(&self, error: &Error) {
        self.voice.say(&Event {
            name: "unavailable",
            fields: json!({ "key": self.key.as_str(), "message": error.to_string() }),
            sentence: format!("still waiting, because the store cannot be used: {error}"),
            weight: Weight::News,
        });
    }

    /// Who holds it, for programs and for people; `None` if nobody does any more, or nobody can tell.
    async fn held_by(&self) -> Option<(Value, String)> {
        let seen = self.coordinator.observe(self.key.as_str()).await.ok()?;
        let (left, record) = (seen.standing.remaining()?, seen.record?);
        let holder = record.holder.as_ref().map_or("somebody", |holder| holder.id());
        let fields = json!({
            "key": self.key.as_str(),
            "holder": holder,
            "token": record.token.get(),
            "left_ms": duration::millis_up(left.at_most),
        });
        let sentence = format!(
            "lease {} on {} is held by {} (token {}), at most {} left",
            self.key,
            self.url,
            output::plain(holder),
            record.token,
            duration::at_most(left.at_most)
        );
        Some((fields, sentence))
    }
}

/// How long a store may be busy without a word.
const BUSY: Duration = Duration::from_secs(5);
