use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure::clock::{BootClock, Clock};
use tenure::fence::FencingToken;
use tenure::record::{Nonce, Record, State};
use tenure::{Coordinator, Denied, Doubt, Error, ErrorKind, Key, Request, Standing, Token};

use crate::args::Taking;
use crate::exit::Failure;
use crate::outlived_commands::{OutlivedCommand, OutlivedCommands};
use crate::progress::{Importance, Notice, ProgressOutput};
use crate::store_trouble::StoreTrouble;
use crate::wait_limit::{self, WaitLimit};
use crate::{duration, output};

/// The acquisition of a lease by a command, which reports the reason while it waits.
#[derive(Debug)]
pub(crate) struct Acquisition<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) key: &'a Key,
    /// URL of the store, for messages.
    pub(crate) url: &'a str,
    pub(crate) progress: &'a ProgressOutput,
    pub(crate) wait: WaitLimit,
    /// Set if the lease is taken over from its holder.
    pub(crate) taking: Option<&'a Taking>,
    /// True if only the exit code reports that another holder has the lease.
    pub(crate) quiet: bool,
    /// The exit code for that case.
    pub(crate) conflict: u8,
    pub(crate) outlived: OutlivedCommands<'a>,
    pub(crate) trouble: StoreTrouble<'a>,
}

/// The reason why a lease is not free.
struct Situation {
    record: Arc<Record>,
    /// The reason as JSON.
    fields: Value,
    /// The reason as a sentence.
    sentence: String,
    /// True if its lease has run out and its command is alive.
    outlived: bool,
}

impl Acquisition<'_> {
    /// Acquires what `ask` requests. The flag is true if that required waiting.
    pub(crate) async fn acquire<T>(
        &self,
        request: Request,
        ask: impl AsyncFn(Request) -> Result<T, Error>,
    ) -> Result<(T, bool), Failure> {
        let (granted, waited) = match self.taking {
            Some(taking) => (self.steal(request, taking, ask).await, true),
            None => self.try_then_wait(request, ask).await,
        };
        match granted {
            Ok(granted) => {
                self.outlived.report_taken().await;
                Ok((granted, waited))
            }
            Err(error) if error.kind() == ErrorKind::Held => Err(self.held_failure(&error).await),
            Err(error) => match error.denied() {
                Some(Denied::Unclear(doubt)) => Err(self.unclear_failure(*doubt)),
                _ => Err(error.into()),
            },
        }
    }

    async fn try_then_wait<T>(
        &self,
        mut request: Request,
        ask: impl AsyncFn(Request) -> Result<T, Error>,
    ) -> (Result<T, Error>, bool) {
        let granted = {
            let mut first = std::pin::pin!(ask(request.clone().wait(Duration::ZERO)));
            tokio::select! {
                granted = &mut first => granted,
                limit = self.wait.over() => tokio::select! {
                    granted = first => granted,
                    () = self.first_grant_over() => Err(self.silent_store(limit)),
                },
            }
        };
        say_logbook_failed(self.coordinator, self.progress);
        if let Some(nested) = granted.as_ref().err().and_then(|error| self.nested_error(error)) {
            return (Err(nested), false);
        }
        // A store that is busy for a moment is a reason to wait, as a holder is.
        let error = match granted {
            Err(error)
                if !self.wait.is_over()
                    && !matches!(error.denied(), Some(Denied::NotDue { .. }))
                    && matches!(error.kind(), ErrorKind::Held | ErrorKind::Unavailable) =>
            {
                error
            }
            granted => return (granted, false),
        };
        let withheld = self.withheld_sentence(&error);
        let is_withheld = withheld.is_some();
        let said = match withheld {
            Some(sentence) => {
                self.say_withheld(sentence);
                Vec::new()
            }
            None => self.say_waiting().await,
        };
        if let Some(remaining) = self.wait.remaining() {
            // Zero would mean one more attempt, which may take longer than the wait.
            request = request.wait(remaining.max(Duration::from_millis(1)));
        }
        let granted = self.wait_for(said, is_withheld, ask(request)).await;
        // The wait may end during an attempt whose cause is not known yet.
        let granted = match granted {
            Err(last) if last.kind() == ErrorKind::Unavailable && last.source().is_none() => {
                Err(if error.kind() == ErrorKind::Unavailable { error } else { last })
            }
            granted => granted,
        };
        (granted, true)
    }

    async fn steal<T>(
        &self,
        mut request: Request,
        taking: &Taking,
        ask: impl AsyncFn(Request) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.say_taking(taking).await;
        if let Some(remaining) = self.wait.remaining() {
            request = request.wait(remaining);
        }
        request = if taking.now { request.take_now(&taking.reason) } else { request.revoke(&taking.reason) };
        self.wait_for(Vec::new(), false, ask(request)).await
    }

    /// Waits for the grant, and reports what delays it, except what was said already: the live commands of these terms, and
    /// that the store grants nothing.
    async fn wait_for<T>(&self, said: Vec<Nonce>, is_withheld: bool, granted: impl Future<Output = T>) -> T {
        let what = format!("lease {} on {}", self.key, self.url);
        self.trouble.report_while(&what, is_withheld, self.outlived.report_while(said, granted)).await
    }

    /// Error of a command inside the very run that holds the lease: it would wait for itself.
    fn nested_error(&self, error: &Error) -> Option<Error> {
        let Some(Denied::Held(held)) = error.denied() else { return None };
        let record = &held.record;
        let own = FencingToken::from_env().ok()??;
        if (own.name(), own.token()) != (self.key, record.token) {
            return None;
        }
        let sentence = format!(
            "lease {} on {} (token {}) is held by the tenure run or hold that this command is part of, so it would wait for itself: use \
             another name, or leave out the inner command",
            self.key, self.url, record.token
        );
        Some(Error::new(ErrorKind::Invalid, sentence))
    }

    /// Completes when the first attempt may take no longer, although the wait is over: at once, unless the lease is
    /// free and its first grant waits for the store's clock. Only this wait would keep a short `--wait` from ever being
    /// enough.
    async fn first_grant_over(&self) {
        let tick = self.coordinator.guarantees().clock_tick;
        if tick.is_zero() {
            return;
        }
        let clock = BootClock::new();
        let read = tokio::select! {
            read = self.coordinator.record(self.key.as_str()) => read,
            () = clock.sleep_until(clock.now() + tick / 2) => return,
        };
        if read.is_ok_and(|record| record.is_none_or(|record| record.state == State::Vacant)) {
            // One tick to wait, and one more for the read and the grant.
            clock.sleep_until(clock.now() + 2 * tick).await;
        }
    }

    /// Error of a store that has not answered the first attempt when the wait is over.
    fn silent_store(&self, limit: Duration) -> Error {
        let (key, url, limit) = (self.key, self.url, duration::exact(limit));
        let sentence = format!(
            "lease {key} on {url} could not be granted within --wait {limit}, because the store does not answer: check \
             that the store runs and can be reached, or wait longer"
        );
        Error::new(ErrorKind::Unavailable, sentence)
    }

    /// Failure of a command that is skipped because the last successful one began too recently.
    fn skipped_failure(&self, token: Token, since: Duration, left: Duration) -> Failure {
        let sentence = format!(
            "lease {} on {} is not due: the last successful command (token {token}) began {} ago, so this one is skipped. Try \
             again in {}, or use --once-per 0s to run it now",
            self.key,
            self.url,
            duration::at_least(since),
            duration::at_most(left)
        );
        self.progress.say(&Notice {
            name: "skipped",
            fields: json!({
                "token": token.get(),
                "since_ms": u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
                "left_ms": duration::millis_up(left),
            }),
            sentence: sentence.clone(),
            importance: Importance::Machine,
        });
        if self.quiet { Failure::silent(self.conflict) } else { Failure::new(self.conflict, sentence) }
    }

    /// Failure of a command that cannot know whether it is due.
    fn unclear_failure(&self, doubt: Doubt) -> Failure {
        let why = match doubt {
            Doubt::WallApart(apart) => format!(
                "it is not due, but the clocks of the store and of this machine differ by {}, so the store's clock may stand \
                 still. Set the clocks",
                duration::at_least(apart)
            ),
            Doubt::SuccessAhead(ahead) => format!(
                "its last successful command began {} in the future by the store's clock. Set that clock, or run the command once \
                 with --once-per 0s",
                duration::at_least(ahead)
            ),
            _ => "the store's clock is not set, and --once-per needs it. Set it".to_owned(),
        };
        Failure::misconfigured(format!("lease {} on {} is not granted: {why}", self.key, self.url))
    }

    async fn held_failure(&self, error: &Error) -> Failure {
        if let Some(Denied::NotDue { token, since, left }) = error.denied() {
            return self.skipped_failure(*token, *since, *left);
        }
        if self.quiet && !self.progress.is_json() {
            // A result and not an error: the exit code reports it.
            return Failure::silent(self.conflict);
        }
        let failure = self.conflict_failure(error).await;
        if self.quiet { Failure::silent(self.conflict) } else { failure }
    }

    /// Failure of a command that another holder, or the store, keeps from the lease.
    async fn conflict_failure(&self, error: &Error) -> Failure {
        if let Some(sentence) = self.withheld_sentence(error) {
            say_conflict(self.progress, json!({ "message": sentence }));
            return Failure::new(self.conflict, format!("{sentence}: {}", self.advice()));
        }
        let Some(situation) = self.situation().await else {
            say_conflict(self.progress, json!({ "message": error.to_string() }));
            return Failure::new(self.conflict, error.to_string());
        };
        say_conflict(self.progress, situation.fields);
        let asked = matches!(situation.record.state, State::Revoked(_));
        let unstoppable = situation.record.cannot_stop().filter(|_| self.taking.is_some());
        let next = match (self.taking, self.wait.allows_waiting()) {
            _ if situation.outlived => {
                "kill it, wait longer, or continue after a time with --orphan-wait DURATION"
            }
            (Some(_), _) if unstoppable.is_some() && !asked => {
                "it was not asked to release, so kill that command, wait until it ends, or take over the lease with \
                 --now"
            }
            (Some(_), _) if unstoppable.is_some() => {
                "it was asked to release, so kill that command, wait longer, or take over the lease with --now"
            }
            (Some(_), _) => {
                "it was asked to release and has not yet, so wait longer, or take it over with --now"
            }
            (None, _) => self.advice(),
        };
        let why = unstoppable.map(|because| cannot_stop(because)).unwrap_or_default();
        Failure::new(self.conflict, format!("{}{why}: {next}", situation.sentence))
    }

    /// Advice to a command that may try again.
    fn advice(&self) -> &'static str {
        if self.wait.allows_waiting() {
            "try again later, or wait longer"
        } else {
            "try again later, or wait for it with --wait DURATION"
        }
    }

    /// The reason why the store holds back grants; `None` if it does not.
    fn withheld_sentence(&self, error: &Error) -> Option<String> {
        let Some(Denied::Withheld(_)) = error.denied() else { return None };
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        Some(format!("lease {} on {} cannot be granted yet: {cause}", self.key, self.url))
    }

    /// The reason why it is not free; `None` if it is free by now, or if the reason cannot be read in time.
    async fn situation(&self) -> Option<Situation> {
        let limit = self.wait.remaining().unwrap_or(SITUATION_MAX).clamp(SITUATION_LEAST, SITUATION_MAX);
        tokio::select! {
            situation = self.read_situation() => situation,
            () = BootClock::new().sleep_until(BootClock::new().now() + limit) => None,
        }
    }

    async fn read_situation(&self) -> Option<Situation> {
        let seen = self.coordinator.observe(self.key.as_str()).await.ok()?;
        let (remaining, record) = (seen.standing.remaining(), seen.record?);
        let Some(left) = remaining else {
            return match seen.standing {
                Standing::RanOut => self.outlived(record).await,
                _ => None,
            };
        };
        let holder = record.holder.as_ref().map_or("another holder", |holder| holder.id());
        let fields = json!({
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
        Some(Situation { record, fields, sentence, outlived: false })
    }

    /// The command that is alive although its lease has run out; `None` if it has exited by now.
    async fn outlived(&self, record: Arc<Record>) -> Option<Situation> {
        let OutlivedCommand { fields, sentence } = self.outlived.find(self.key, &record).await?;
        Some(Situation { record, fields, sentence, outlived: true })
    }

    // ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Reports the reason for the wait. Returns the term whose command is the reason, if it is one.
    async fn say_waiting(&self) -> Vec<Nonce> {
        let Some(Situation { record, fields, sentence, outlived }) = self.situation().await else {
            return Vec::new();
        };
        let wait = if outlived {
            [self.wait.given(), self.outlived.limit].into_iter().flatten().min()
        } else {
            self.wait.given()
        };
        let limit = wait_limit::words(wait);
        self.progress.say(&Notice {
            name: "waiting",
            fields,
            sentence: format!("standing by {limit}: {sentence}"),
            importance: Importance::News,
        });
        Vec::from_iter(outlived.then_some(record.term))
    }

    /// Reports that the store holds back grants, and that this process waits until it no longer does.
    fn say_withheld(&self, sentence: String) {
        let limit = self.wait.words();
        self.progress.say(&Notice {
            name: "waiting",
            fields: json!({}),
            sentence: format!("standing by {limit}: {sentence}"),
            importance: Importance::News,
        });
    }

    /// Reports the consequences of a takeover for the holder.
    async fn say_taking(&self, taking: &Taking) {
        let Some(situation) = self.situation().await else { return };
        let unstoppable = situation.record.cannot_stop();
        if !taking.now && (situation.outlived || unstoppable.is_some()) {
            // The holder is not asked: the result, or a message during the wait, gives the reason.
            return;
        }
        let until =
            if situation.outlived || unstoppable.is_some() { "its command has ended" } else { "then" };
        let why = unstoppable.map(|because| cannot_stop(because)).unwrap_or_default();
        let (fields, sentence) = (situation.fields, format!("{}{why}", situation.sentence));
        let notice = if taking.now {
            Notice {
                name: "taking",
                fields,
                sentence: format!(
                    "{sentence}: not waiting for it, so both may act at once until {until}. Only a resource that \
                     checks the token refuses the writes of the old holder"
                ),
                importance: Importance::Trouble,
            }
        } else {
            Notice {
                name: "revoking",
                fields,
                sentence: format!("{sentence}: asking it to release, and waiting"),
                importance: Importance::News,
            }
        };
        self.progress.say(&notice);
    }
}

/// Reports what keeps the command from its lease, for programs. For people, the error at its end does.
pub(crate) fn say_conflict(progress: &ProgressOutput, fields: Value) {
    progress.say(&Notice {
        name: "conflict",
        fields,
        sentence: String::new(),
        importance: Importance::Machine,
    });
}

/// Reports that the logbook failed: the next contender may wait for a dead holder as long as this one did.
pub(crate) fn say_logbook_failed(coordinator: &Coordinator, progress: &ProgressOutput) {
    let Some(sentence) = coordinator.logbook_error() else { return };
    progress.say(&Notice {
        name: "forgetful",
        fields: json!({ "message": sentence }),
        sentence: output::plain(&sentence),
        importance: Importance::News,
    });
}

/// The end of a sentence about a holder that cannot stop its command.
fn cannot_stop(because: &str) -> String {
    format!(", and its command cannot be stopped, because {}", output::plain(because))
}

/// Limits of the time to read the reason for a message: the wait that is left, but enough for a healthy store, and no
/// more than a message is worth.
const SITUATION_LEAST: Duration = Duration::from_secs(1);
const SITUATION_MAX: Duration = Duration::from_secs(5);
