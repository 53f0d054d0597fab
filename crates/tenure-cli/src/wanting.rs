use std::time::Duration;

use serde_json::{Value, json};
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, Error, Key, Kind, Request};

use crate::args::Taking;
use crate::exit::Failure;
use crate::voice::{Event, Voice, Weight};
use crate::{duration, output};

/// Somebody at the command line who wants a lease, and is told why it is not there yet.
#[derive(Debug)]
pub(crate) struct Wanting<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) key: &'a Key,
    /// Names the store for people.
    pub(crate) url: &'a str,
    pub(crate) voice: Voice,
    /// How long to wait; `None` for as long as it takes.
    pub(crate) wait: Option<Duration>,
    /// Whether it is taken from whoever holds it.
    pub(crate) taking: Option<&'a Taking>,
    /// Whether the exit code is to tell alone that somebody else holds it.
    pub(crate) quiet: bool,
    /// The exit code for that.
    pub(crate) conflict: u8,
}

impl Wanting<'_> {
    /// Gets what `ask` asks for, and says whether that took waiting.
    pub(crate) async fn get<T>(
        &self,
        request: Request,
        ask: impl AsyncFn(Request) -> Result<T, Error>,
    ) -> Result<(T, bool), Failure> {
        let (granted, waited) = match self.taking {
            Some(taking) => (self.take(request, taking, ask).await, true),
            None => self.ask_nicely(request, ask).await,
        };
        match granted {
            Ok(granted) => Ok((granted, waited)),
            Err(error) if error.kind() == Kind::Held => Err(self.held(&error).await),
            Err(error) => Err(error.into()),
        }
    }

    async fn ask_nicely<T>(
        &self,
        mut request: Request,
        ask: impl AsyncFn(Request) -> Result<T, Error>,
    ) -> (Result<T, Error>, bool) {
        let granted = ask(request.clone().wait(Duration::ZERO)).await;
        self.say_forgetful();
        // A store that is busy for a moment is waited for like a holder.
        let error = match granted {
            Err(error) if self.waits() && matches!(error.kind(), Kind::Held | Kind::Unavailable) => error,
            granted => return (granted, false),
        };
        self.say_waiting().await;
        if let Some(limit) = self.wait {
            request = request.wait(limit);
        }
        let mut acquiring = std::pin::pin!(ask(request));
        let granted = match error.kind() {
            Kind::Held => acquiring.await,
            _ => tokio::select! {
                granted = &mut acquiring => granted,
                () = BootClock::new().sleep_until(BootClock::new().now() + BUSY) => {
                    self.say_unavailable(&error);
                    acquiring.await
                }
            },
        };
        (granted, true)
    }

    async fn take<T>(
        &self,
        mut request: Request,
        taking: &Taking,
        ask: impl AsyncFn(Request) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.say_taking(taking).await;
        if let Some(limit) = self.wait {
            request = request.wait(limit);
        }
        ask(if taking.now { request.take_now(&taking.reason) } else { request.revoke(&taking.reason) }).await
    }

    fn waits(&self) -> bool {
        self.wait != Some(Duration::ZERO)
    }

    async fn held(&self, error: &Error) -> Failure {
        if self.quiet {
            // It is an answer and no error, and the exit code gives it.
            return Failure::silent(self.conflict);
        }
        let next = match (self.taking, self.waits()) {
            (Some(_), _) => {
                "it was asked to let go and has not yet, so wait for longer, or take it with --now"
            }
            (None, true) => "try again later, or wait for longer",
            (None, false) => "try again later, or wait for it with --wait DURATION",
        };
        let sentence = match self.held_by().await {
            Some((_, sentence)) => format!("{sentence}: {next}"),
            None => error.to_string(),
        };
        Failure::new(self.conflict, sentence)
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

    // ── what is said ──────────────────────────────────────────────────────────────────────────────────────────────

    async fn say_waiting(&self) {
        let Some((fields, sentence)) = self.held_by().await else { return };
        let limit = match self.wait {
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

    /// Whoever tries next may find a dead holder held for as long as this one did.
    fn say_forgetful(&self) {
        let Some(sentence) = self.coordinator.logbook_trouble() else { return };
        self.voice.say(&Event {
            name: "forgetful",
            fields: json!({ "message": sentence }),
            sentence: output::plain(&sentence),
            weight: Weight::News,
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

    /// What taking it means for whoever holds it.
    async fn say_taking(&self, taking: &Taking) {
        let Some((fields, sentence)) = self.held_by().await else { return };
        self.voice.say(&match taking.now {
            false => Event {
                name: "revoking",
                fields,
                sentence: format!("{sentence}: it is asked to let go, and is waited for"),
                weight: Weight::News,
            },
            true => Event {
                name: "taking",
                fields,
                sentence: format!(
                    "{sentence}: it is not waited for, and until then both may act at once. Only a resource that checks \
                     the token keeps the writes of the old one out"
                ),
                weight: Weight::Trouble,
            },
        });
    }
}

/// How long a store may be busy without a word.
const BUSY: Duration = Duration::from_secs(5);
