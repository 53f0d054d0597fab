//! `tenure resign`: asks the leader of an election to resign.

use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use tenure::record::{End, Record, State};
use tenure::{Coordinator, ErrorKind, Holder, Key, Observation, Standing};

use crate::args::{self, Args};
use crate::exit::{self, Failure};
use crate::output::plain;
use crate::progress::{Importance, Notice, ProgressOutput, Verbosity};
use crate::signals::{self, Blocked};
use crate::store::ChosenStore;
use crate::wait_limit::WaitLimit;
use crate::{duration, leader, output, store};

/// The answer as JSON. The fields and their names are a contract: `docs/reference/command/elect.md`.
#[derive(Serialize)]
struct ResignAnswer {
    store: String,
    name: String,
    /// The leader that was asked; `None` if there was none.
    holder: Option<String>,
    token: Option<u64>,
    /// The way in which its term ended; `None` if there was none.
    end: Option<&'static str>,
}

/// Asks the leader to resign, and waits until its term is over.
pub(crate) fn resign(args: &Args, resign: &args::Resign) -> Result<ExitCode, Failure> {
    let wait = WaitLimit::from_now(resign.wait);
    let key = Key::parse(&resign.name)?;
    let holder = resign.holder.as_deref().map(Holder::new).transpose().map_err(tenure::Error::from)?;
    let chosen = store::choose(args)?;
    // Before the first thread, which inherits the mask.
    let blocked = Blocked::now().map_err(signals::no_signals)?;
    let ended = store::block_on(async {
        let signals = blocked.take().map_err(signals::no_signals)?;
        if !chosen.is_there()? {
            // A store that does not exist has no leader, and is not created for that.
            return Ok(Some(None));
        }
        let mut builder = store::coordinator(args);
        if let Some(holder) = holder {
            builder = builder.holder(holder);
        }
        let coordinator = store::connect(builder, chosen.open()?, &wait, &signals).await?;
        let asking = Resignation { coordinator: &coordinator, store: &chosen, key: &key, wait, resign };
        tokio::select! {
            ended = asking.ask() => ended.map(Some),
            signal = signals.ended() => Err(Failure::silent(128 + signal as u8)),
        }
    })?;
    let (answer, sentence) = match ended.flatten() {
        None => (ResignAnswer::without_leader(&chosen, &key), leader::LeaderView::none(&key).sentence()),
        Some((record, end)) => {
            let holder = name_of(&record);
            let sentence = format!(
                "{}: {} {}, token {}\n",
                plain(key.as_str()),
                plain(&holder),
                words(end),
                record.token
            );
            let (holder, token) = (Some(holder), Some(record.token.get()));
            (
                ResignAnswer { holder, token, end: Some(end), ..ResignAnswer::without_leader(&chosen, &key) },
                sentence,
            )
        }
    };
    if resign.json {
        output::answer_json(&answer)?;
    } else if !resign.quiet {
        output::answer(&sentence)?;
    }
    Ok(if answer.end.is_some() { ExitCode::SUCCESS } else { ExitCode::from(exit::FREE) })
}

impl ResignAnswer {
    fn without_leader(store: &ChosenStore, key: &Key) -> Self {
        Self { store: store.url(), name: key.to_string(), holder: None, token: None, end: None }
    }
}

/// One request to a leader.
struct Resignation<'a> {
    coordinator: &'a Coordinator,
    store: &'a ChosenStore,
    key: &'a Key,
    wait: WaitLimit,
    resign: &'a args::Resign,
}

impl Resignation<'_> {
    /// The record of the leader that was asked, and the way in which its term ended; `None` if there was no leader.
    async fn ask(&self) -> Result<Option<(Arc<Record>, &'static str)>, Failure> {
        let seen = self.observe().await?;
        store::warn_if_logbook_failed(self.coordinator, self.resign.json);
        let Some(record) = seen.record.as_ref().filter(|_| seen.standing.is_held()) else { return Ok(None) };
        if record.cannot_stop().is_none() {
            self.say_asking(&seen, record);
        }
        let mut request = self.coordinator.lease(self.key.as_str())?.heed_tree(None);
        if let Some(remaining) = self.wait.remaining() {
            request = request.wait(remaining);
        }
        match request.end_term(record, &self.resign.reason).await {
            Ok(()) => Ok(Some((Arc::clone(record), end_of(record, &self.observe().await?)))),
            Err(error) if error.kind() == ErrorKind::Held => Err(self.held_failure(record, &error).await),
            Err(error) => Err(error.into()),
        }
    }

    async fn observe(&self) -> Result<Observation, Failure> {
        leader::observe(self.coordinator, self.store, self.key).await
    }

    async fn held_failure(&self, record: &Record, error: &tenure::Error) -> Failure {
        let now = self.observe().await.ok().and_then(|seen| seen.record);
        let Some(now) = now.filter(|now| now.term == record.term && matches!(now.state, State::Revoked(_)))
        else {
            // It was not asked, and the error says why.
            return Failure::new(exit::HELD, error.to_string());
        };
        let why = now.cannot_stop().map(|why| format!(", because {}", plain(why))).unwrap_or_default();
        Failure::new(
            exit::HELD,
            format!(
                "{} (token {}) still leads {} on {}: it was asked to resign and has not yet{why}. Wait longer, or take \
                 over the lease with tenure steal --now",
                plain(&name_of(&now)),
                now.token,
                self.key,
                self.store.url()
            ),
        )
    }

    fn say_asking(&self, seen: &Observation, record: &Record) {
        let left = seen.standing.remaining().map(|left| left.at_most).unwrap_or_default();
        let (holder, token) = (name_of(record), record.token);
        let verbosity = Verbosity::of(self.resign.quiet, false);
        ProgressOutput::new(verbosity, self.resign.json, self.key.as_str(), &self.store.url()).say(&Notice {
            name: "revoking",
            fields: json!({
                "holder": holder,
                "token": token.get(),
                "left_ms": duration::millis_up(left),
            }),
            sentence: format!(
                "{} (token {token}) leads {} on {}, at most {} left: asking it to resign, and waiting",
                plain(&holder),
                self.key,
                self.store.url(),
                duration::at_most(left)
            ),
            importance: Importance::News,
        });
    }
}

fn name_of(record: &Record) -> String {
    record.holder.as_ref().map_or("another holder", |holder| holder.id()).to_owned()
}

/// The way in which the term of this record ended, as a later observation shows it. The record of the next leader shows
/// that the term was revoked, but not whether its leader released it.
fn end_of(record: &Record, seen: &Observation) -> &'static str {
    match (&seen.record, &seen.standing) {
        (Some(now), Standing::RanOut) if now.term == record.term => "ran-out",
        (Some(now), Standing::Dead) if now.term == record.term => "died",
        (Some(now), _) if now.term == record.term => "released",
        (Some(now), _) => match now.history.iter().find(|past| past.token == record.token) {
            Some(past) if past.end == End::Released => "released",
            Some(past) if past.end == End::RanOut => "ran-out",
            Some(past) if past.end == End::Died => "died",
            _ => "over",
        },
        (None, _) => "over",
    }
}

fn words(end: &str) -> &'static str {
    match end {
        "released" => "has resigned",
        "ran-out" => "did not answer, and its term has run out",
        "died" => "is dead",
        _ => "no longer leads",
    }
}
