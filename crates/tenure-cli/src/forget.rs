//! `tenure forget`.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::Serialize;
use tenure::{Error, ErrorKind, Forgotten, Key, Prefix, Token, WhyKept};

use crate::args::{Args, Forget};
use crate::duration;
use crate::exit::Failure;
use crate::output::{self, plain};
use crate::store::{self, ChosenStore};
use crate::table;

#[derive(Serialize)]
struct ForgetAnswer<'a> {
    store: String,
    dry_run: bool,
    leases: &'a [ForgetOutcome],
}

/// A lease that was examined. The fields and their names are a contract: `docs/reference/command/forget.md`.
#[derive(Debug, Serialize)]
struct ForgetOutcome {
    name: String,
    action: &'static str,
    reason: Option<&'static str>,
    token: Option<u64>,
    vacant_ms: Option<u64>,
    problem: Option<String>,
}

/// Removes records that have been vacant for long, or lists them in a dry run.
pub(crate) fn forget(args: &Args, forget: &Forget) -> Result<ExitCode, Failure> {
    let prefix = Prefix::parse(&forget.prefix)?;
    let store = store::choose(args)?;
    let mut failed = None;
    let mut leases = Vec::new();
    for (key, outcome) in store::block_on(sweep(args, &store, &prefix, forget))? {
        match outcome {
            // Another process was faster.
            Ok(Forgotten::Absent) => {}
            Ok(Forgotten::Removed { token, vacant_for }) => {
                leases.push(ForgetOutcome::removed(&key, token, vacant_for, forget.yes));
            }
            Ok(Forgotten::Kept(kept)) => leases.push(ForgetOutcome::kept(&key, &kept)),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                leases.push(ForgetOutcome::foreign(&key, error.to_string()))
            }
            Err(error) => {
                leases.push(ForgetOutcome {
                    problem: Some(error.to_string()),
                    ..ForgetOutcome::of(&key, FAILED, None)
                });
                failed = failed.or(Some(error));
            }
        }
    }
    if forget.json {
        output::answer_json(&ForgetAnswer { store: store.url(), dry_run: !forget.yes, leases: &leases })?;
    } else {
        print_for_people(&store, &prefix, forget, &leases)?;
    }
    failed.map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

/// Every key under the prefix, and its result.
async fn sweep(
    args: &Args,
    store: &ChosenStore,
    prefix: &Prefix,
    forget: &Forget,
) -> Result<Vec<(Key, Result<Forgotten, Error>)>, Failure> {
    // A store that does not exist is not created in order to forget nothing.
    let Some(mut coordinator) = store.connect_to_read().await? else { return Ok(Vec::new()) };
    if forget.yes {
        coordinator = store::coordinator_without_logbook(args).connect(store.open()?.store).await?;
    }
    let keys = coordinator.list(prefix).await?;
    let mut progress = ForgetProgress::new(keys.len(), forget.json);
    let looks = keys.into_iter().map(|key| {
        let coordinator = &coordinator;
        async move {
            let outcome = if forget.yes {
                coordinator.forget(key.as_str(), forget.vacant_for).await
            } else {
                coordinator.would_forget(key.as_str(), forget.vacant_for).await
            };
            (key, outcome)
        }
    });
    let mut looks = stream::iter(looks).buffered(CALLS_AT_ONCE);
    let mut swept = Vec::new();
    while let Some((key, outcome)) = looks.next().await {
        match outcome {
            // The store lacks the ability, so every key fails the same way.
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error.into()),
            outcome => swept.push((key, outcome)),
        }
        progress.step();
    }
    Ok(swept)
}

/// The answer as text.
fn print_for_people(
    store: &ChosenStore,
    prefix: &Prefix,
    forget: &Forget,
    leases: &[ForgetOutcome],
) -> Result<(), Failure> {
    if leases.is_empty() {
        let below = if forget.prefix.is_empty() { String::new() } else { format!(" under {prefix}") };
        output::say(&format!("no leases{below} in {}", store.url()));
        return Ok(());
    }
    let shown = leases.iter().filter(|lease| forget.verbose || lease.action != KEPT);
    let rows: Vec<_> = shown.map(ForgetOutcome::row).collect();
    let mut text = if rows.is_empty() {
        String::new()
    } else {
        table::lines(["NAME", "VACANT FOR", "TOKEN", "WHAT"], rows)
    };
    text.push_str(&summary(forget, leases));
    output::answer(&text)
}

fn summary(forget: &Forget, leases: &[ForgetOutcome]) -> String {
    let gone = leases.iter().filter(|lease| [REMOVED, WOULD_REMOVE].contains(&lease.action)).count();
    let mut text = match (gone, forget.yes) {
        (0, _) => format!(
            "nothing to remove: no lease here was vacant for {}\n",
            duration::exact(forget.vacant_for)
        ),
        (_, true) => format!("{} removed\n", count_leases(gone)),
        (_, false) => format!("{} would be removed: --yes removes them\n", count_leases(gone)),
    };
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in leases.iter().filter_map(|lease| lease.reason) {
        *kept.entry(reason).or_default() += 1;
    }
    if !kept.is_empty() {
        let total: usize = kept.values().sum();
        let reasons: Vec<_> =
            kept.iter().map(|(reason, count)| format!("{count} {}", words(reason))).collect();
        let names = if forget.verbose { "" } else { "; -v names them" };
        text.push_str(&format!("{} kept: {}{names}\n", count_leases(total), reasons.join(", ")));
    }
    text
}

fn count_leases(count: usize) -> String {
    if count == 1 { "1 lease".to_owned() } else { format!("{count} leases") }
}

impl ForgetOutcome {
    fn of(key: &Key, action: &'static str, reason: Option<&'static str>) -> Self {
        Self { name: key.to_string(), action, reason, token: None, vacant_ms: None, problem: None }
    }

    fn removed(key: &Key, token: Token, vacant_for: Duration, yes: bool) -> Self {
        let action = if yes { REMOVED } else { WOULD_REMOVE };
        let token = Some(token).filter(|token| *token > Token::ZERO).map(Token::get);
        Self { token, vacant_ms: Some(millis(vacant_for)), ..Self::of(key, action, None) }
    }

    fn foreign(key: &Key, problem: String) -> Self {
        Self { problem: Some(problem), ..Self::of(key, KEPT, Some("foreign")) }
    }

    fn kept(key: &Key, kept: &WhyKept) -> Self {
        let lease = |reason| Self::of(key, KEPT, Some(reason));
        match kept {
            WhyKept::Held => lease("held"),
            WhyKept::Revoked => lease("revoked"),
            WhyKept::Reserved => lease("reserved"),
            WhyKept::NotReleased => lease("not-released"),
            WhyKept::PlainKey => lease("key"),
            WhyKept::Closed => lease("closed"),
            WhyKept::Foreign(what) => Self::foreign(key, what.to_string()),
            WhyKept::TooYoung { vacant_for } => {
                Self { vacant_ms: Some(millis(*vacant_for)), ..lease("too-young") }
            }
            WhyKept::AheadOfClock { token } => Self { token: Some(token.get()), ..lease("ahead-of-clock") },
            _ => lease("changed"),
        }
    }

    fn row(&self) -> [String; 4] {
        let vacant = self.vacant_ms.map(|millis| duration::at_least(Duration::from_millis(millis)));
        let what = match (self.reason, self.action) {
            (Some(reason), _) => format!("kept: {}", words(reason)),
            (None, WOULD_REMOVE) => "would be removed".to_owned(),
            (None, action) => action.to_owned(),
        };
        let problem =
            self.problem.as_ref().map(|problem| format!(" ({})", plain(problem))).unwrap_or_default();
        [
            plain(&self.name),
            vacant.unwrap_or_else(|| "-".to_owned()),
            self.token.map_or("-".to_owned(), |token| token.to_string()),
            what + &problem,
        ]
    }
}

/// A reason in words.
fn words(reason: &str) -> &str {
    match reason {
        "key" => "a plain key that was not released",
        "not-released" => "never released by a dead holder",
        "too-young" => "not vacant for long enough",
        "ahead-of-clock" => "with a token that the store's clock has not reached",
        "changed" => "changed at the same moment",
        reason => reason,
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Progress on a terminal.
struct ForgetProgress {
    total: usize,
    done: usize,
    shown: bool,
}

impl ForgetProgress {
    fn new(total: usize, json: bool) -> Self {
        Self { total, done: 0, shown: total >= PROGRESS_FROM && !json && std::io::stderr().is_terminal() }
    }

    fn step(&mut self) {
        self.done += 1;
        if self.shown && (self.done.is_multiple_of(PROGRESS_EVERY) || self.done == self.total) {
            let end = if self.done == self.total { "\n" } else { "" };
            let _ = std::io::stderr().write_all(format!("\r{} of {}{end}", self.done, self.total).as_bytes());
        }
    }
}

const REMOVED: &str = "removed";
const WOULD_REMOVE: &str = "would-remove";
const KEPT: &str = "kept";
const FAILED: &str = "failed";

/// Enough to keep a disk or a connection busy.
const CALLS_AT_ONCE: usize = 16;

const PROGRESS_FROM: usize = 1_000;
const PROGRESS_EVERY: usize = 100;
