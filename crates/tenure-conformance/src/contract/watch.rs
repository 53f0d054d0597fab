//! `watch`: hints, which may be late, merged, spurious or missing, but not always missing.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tenure_store::{BoxStream, Prefix, Version};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "watch",
    checks: &[
        check!("a hint follows a change made over another connection", follow_changes, 1),
        check!("hints continue after the first", follow_changes, 4),
        check!("a watch that is never read or that was dropped blocks no call", unread),
    ],
};

/// Changes the key until enough hints have come, and gives up after a bounded number of changes.
async fn follow_changes(trial: &Trial<'_>, hints: usize) -> CheckResult {
    trial.require(trial.promises.watch, "a watch")?;
    let key = trial.key("watched/key");
    let prefix = Prefix::of(&trial.key("watched"));
    let Some(mut watch) = trial.other().watch(&prefix) else {
        fail!("a watch is promised and there is none")
    };
    let mut version: Option<Version> = None;
    let mut seen = 0;
    let mut changes = 0;
    while seen < hints {
        ensure!(
            changes < hints * CHANGES_FOR_EACH,
            "{seen} hints after {changes} changes, each given {:?}",
            HINT_WAIT * WAITS
        );
        changes += 1;
        let value = trial.value("changed");
        version = Some(match &version {
            None => trial.create(&key, &value).await?,
            Some(version) => trial.replace(&key, &value, version).await?,
        });
        for _ in 0..WAITS {
            if hint_came(trial, &mut watch).await? {
                seen += 1;
                break;
            }
        }
    }
    trial.note(format!("{seen} hints for {changes} changes"));
    Ok(())
}

/// True if a hint came before the pause ended.
async fn hint_came(trial: &Trial<'_>, watch: &mut BoxStream<'static, ()>) -> Result<bool, Stop> {
    match select(pin!(watch.next()), pin!(trial.harness.pause(HINT_WAIT))).await {
        Either::Left((Some(()), _)) => Ok(true),
        Either::Left((None, _)) => fail!("the watch ended by itself"),
        Either::Right(_) => Ok(false),
    }
}

async fn unread(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.watch, "a watch")?;
    let key = trial.key("unread");
    let prefix = Prefix::of(&key);
    let unread = trial.writer().watch(&prefix);
    drop(trial.writer().watch(&prefix));
    let mut version = trial.create(&key, &trial.value("first")).await?;
    let mut value = trial.value("next");
    for _ in 0..trial.repeats() {
        value = trial.value("next");
        version = trial.replace(&key, &value, &version).await?;
    }
    drop(unread);
    trial.holds(&key, &value, &version).await
}

/// Maximum number of changes without a hint, per required hint.
const CHANGES_FOR_EACH: usize = 5;

/// Number of waits for the hint of one change.
const WAITS: u32 = 10;

/// Duration of each wait.
const HINT_WAIT: Duration = Duration::from_millis(50);
