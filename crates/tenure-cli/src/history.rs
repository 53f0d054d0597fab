//! `tenure history`.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use tenure::clock::WallTime;
use tenure::record::{End, Past, Record};
use tenure::{Key, Observation, Standing};

use crate::args::{self, Args};
use crate::duration;
use crate::exit::{self, Failure};
use crate::lease_view::LeaseView;
use crate::output::{self, plain};
use crate::store::{self, ChosenStore};
use crate::table;

/// A history as JSON. The fields and their names are a contract: `docs/reference/command/watch.md`.
#[derive(Serialize)]
struct HistoryAnswer {
    store: String,
    name: String,
    state: &'static str,
    terms: Vec<Term>,
}

#[derive(Debug, Default, Serialize)]
struct Term {
    token: u64,
    holder: String,
    granted_at: String,
    ended_at: Option<String>,
    held_ms: Option<u64>,
    end: Option<String>,
    by: Option<String>,
    because: Option<String>,
    /// Its end or its present state, as text.
    #[serde(skip)]
    words: String,
}

/// Shows the last terms of a lease.
pub(crate) fn history(args: &Args, history: &args::History) -> Result<ExitCode, Failure> {
    let key = Key::parse(&history.name)?;
    let store = store::choose(args)?;
    let seen = store::block_on(look(&store, &key))?;
    let lease = seen.as_ref().map_or_else(|| LeaseView::absent(&key), LeaseView::observed);
    lease.ensure_lease(&store.url())?;
    let terms = seen.as_ref().map(|seen| terms(seen, &lease)).unwrap_or_default();
    if history.json {
        let (store, name) = (store.url(), key.to_string());
        output::answer_json(&HistoryAnswer { store, name, state: lease.state, terms })?;
    } else if terms.is_empty() {
        output::say(&format!(
            "no term of {} is known in {}: it was never held, or its record was removed",
            plain(key.as_str()),
            store.url()
        ));
    } else {
        output::answer(&table::lines(HEAD, terms.iter().map(Term::row).collect()))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn look(store: &ChosenStore, key: &Key) -> Result<Option<Observation>, Failure> {
    let Some(coordinator) = store.connect_to_read().await? else { return Ok(None) };
    let seen = coordinator.observe(key.as_str()).await?;
    if let Standing::Foreign(what) = &seen.standing {
        let sentence = format!("lease {key} on {} has no Tenure record: {what}", store.url());
        return Err(Failure::new(exit::NOT_OURS, sentence));
    }
    Ok(Some(seen))
}

/// The known terms, newest first.
fn terms(seen: &Observation, lease: &LeaseView) -> Vec<Term> {
    let Some(record) = &seen.record else { return Vec::new() };
    let present = record.is_held().then(|| Term::present(seen, record, lease));
    present.into_iter().chain(record.history.iter().rev().map(Term::past)).collect()
}

impl Term {
    fn present(seen: &Observation, record: &Record, lease: &LeaseView) -> Self {
        let held = seen.standing.is_held();
        Self {
            token: record.token.get(),
            holder: record.holder.as_ref().map_or_else(String::new, |holder| holder.id().to_string()),
            granted_at: record.granted_at.to_string(),
            // The end of a term that ran out is not recorded.
            held_ms: span(record.granted_at, seen.seen_at).filter(|_| held),
            words: lease.present_term(),
            ..Self::default()
        }
    }

    fn past(past: &Past) -> Self {
        let (end, by, because) = match &past.end {
            End::Released => ("released", None, None),
            End::RanOut => ("ran-out", None, None),
            End::Died => ("died", None, None),
            End::Revoked { by, because } => ("revoked", Some(by.to_string()), Some(because.to_string())),
            End::Other(word) => (&**word, None, None),
            _ => ("ended", None, None),
        };
        let words = match (&past.end, &by, &because) {
            (End::RanOut, ..) => "run out".to_owned(),
            (_, Some(by), Some(because)) if because.is_empty() => format!("taken over by {}", plain(by)),
            (_, Some(by), Some(because)) => format!("taken over by {} because {}", plain(by), plain(because)),
            _ => plain(end),
        };
        Self {
            token: past.token.get(),
            holder: past.holder.to_string(),
            granted_at: past.granted_at.to_string(),
            ended_at: Some(past.ended_at.to_string()),
            held_ms: span(past.granted_at, past.ended_at),
            end: Some(end.to_owned()),
            by,
            because,
            words,
        }
    }

    /// The cells of a table, in the order of [`HEAD`].
    fn row(&self) -> [String; 5] {
        let held = self.held_ms.map(|millis| duration::at_least(Duration::from_millis(millis)));
        [
            self.granted_at.clone(),
            plain(&self.holder),
            self.token.to_string(),
            held.unwrap_or_else(|| "?".to_owned()),
            self.words.clone(),
        ]
    }
}

/// Time between two wall clocks; `None` if they disagree and the result would be negative.
fn span(from: WallTime, to: WallTime) -> Option<u64> {
    to.as_millis().checked_sub(from.as_millis())
}

const HEAD: [&str; 5] = ["GRANTED AT", "HOLDER", "TOKEN", "HELD FOR", "END"];
