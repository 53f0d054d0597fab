//! Lost answers. The most common bug is a store that guesses the outcome.

use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use tenure_store::{Entry, Expect, Key, Put, StoreError, Version};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::{Trial, excerpt};

pub(crate) const CLAUSE: Clause = Clause {
    name: "unknown",
    checks: &[
        check!("a create whose answer is lost is unknown", lost_answer_of_a_create),
        check!("a replace whose answer is lost is unknown", lost_answer_of_a_replace),
        check!("a write that never arrived is not reported as applied or as a conflict", lost_request),
        check!("a write whose future is dropped leaves the old entry or the new", dropped_write),
        check!("a read whose future is dropped leaves everything as it was", dropped_read),
    ],
};

async fn lost_answer_of_a_create(trial: &Trial<'_>) -> CheckResult {
    lost_answer(trial, &trial.key("created"), None).await
}

async fn lost_answer_of_a_replace(trial: &Trial<'_>) -> CheckResult {
    let (key, old) = (trial.key("replaced"), trial.value("old"));
    let version = trial.create(&key, &old).await?;
    lost_answer(trial, &key, Some((&old, &version))).await
}

async fn lost_answer(trial: &Trial<'_>, key: &Key, old: Option<(&Bytes, &Version)>) -> CheckResult {
    let value = trial.value("written without an answer");
    trial.may_write(&value)?;
    trial.pace(key).await;
    trial.harness.lose_next_answer().await.or_skip()?;
    let expect = old.map_or(Expect::Absent, |(_, version)| Expect::Version(version.clone()));
    let told = trial.writer().put(key, value.clone(), expect).await;
    let entry = trial.read(trial.other(), key).await?;
    let landed = old_or_new(key, old, &value, entry.as_ref())?;
    must_be_unknown(told, landed)?;
    check_writable(trial, key, entry).await
}

/// Libraries that retry on their own turn a win into a conflict (object_store, kube-rs and the AWS SDK do so by
/// default). Some report a connection that was cut after the request as "not sent" (hyper's `IncompleteMessage` in
/// object_store).
fn must_be_unknown(told: Result<Put, StoreError>, landed: bool) -> CheckResult {
    let landed = if landed { "the write is there" } else { "the write is not there" };
    let told = match told {
        Err(StoreError::Unknown(_)) => return Ok(()),
        Ok(Put::Applied(_)) => "applied".to_owned(),
        Ok(Put::Conflict(_)) => "conflict".to_owned(),
        Err(error @ StoreError::Refused(_)) => format!("refused, certainly no effect ({error})"),
        Err(error @ StoreError::Throttled(_)) => format!("throttled ({error})"),
    };
    fail!("the answer was lost, the store said: {told}; {landed}")
}

/// Here *refused* is right too, if the store can be certain: a connection that was never made carried nothing.
async fn lost_request(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("unsent");
    let old = trial.value("old");
    let version = trial.create(&key, &old).await?;
    let value = trial.value("never arrives");
    trial.pace(&key).await;
    trial.harness.lose_next_request().await.or_skip()?;
    let told = trial.writer().put(&key, value.clone(), Expect::Version(version.clone())).await;
    let entry = trial.read(trial.other(), &key).await?;
    let landed = old_or_new(&key, Some((&old, &version)), &value, entry.as_ref())?;
    match told {
        Err(StoreError::Unknown(_) | StoreError::Throttled(_)) => {}
        Err(error @ StoreError::Refused(_)) => {
            ensure!(
                !landed,
                "the store said that it had certainly no effect ({error}), and the write is there"
            );
        }
        Ok(put) => {
            fail!("the request was lost on its way, and the store said: {put:?}");
        }
    }
    check_writable(trial, &key, entry).await
}

/// A future may be dropped at any time: between the check and the write, while it holds a lock, with half a file
/// written.
async fn dropped_write(trial: &Trial<'_>) -> CheckResult {
    for polls in 1..=POLLS_MAX {
        let created = trial.key(&format!("created-{polls}"));
        let value = trial.value("create, dropped");
        trial.may_write(&value)?;
        trial.pace(&created).await;
        start_and_drop(polls, trial.writer().put(&created, value.clone(), Expect::Absent)).await;
        check_settled(trial, &created, None, &value).await?;

        let replaced = trial.key(&format!("replaced-{polls}"));
        let old = trial.value("old");
        let version = trial.create(&replaced, &old).await?;
        let value = trial.value("replace, dropped");
        let expect = Expect::Version(version.clone());
        trial.pace(&replaced).await;
        start_and_drop(polls, trial.writer().put(&replaced, value.clone(), expect)).await;
        check_settled(trial, &replaced, Some((&old, &version)), &value).await?;
    }
    Ok(())
}

async fn dropped_read(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("read");
    let value = trial.value("stays");
    let version = trial.create(&key, &value).await?;
    for polls in 1..=POLLS_MAX {
        start_and_drop(polls, trial.writer().get(&key)).await;
    }
    trial.holds(&key, &value, &version).await?;
    let value = trial.value("goes on");
    let next = trial.replace(&key, &value, &version).await?;
    trial.holds(&key, &value, &next).await
}

/// Polls the call at most this many times, and drops it.
async fn start_and_drop<T>(polls: usize, mut call: tenure_store::BoxFuture<'_, T>) {
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        match call.as_mut().poll(context) {
            Poll::Pending if left > 0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
}

/// Reads a few times, because a dropped write may still arrive, and then continues with the key.
async fn check_settled(
    trial: &Trial<'_>,
    key: &Key,
    old: Option<(&Bytes, &Version)>,
    new: &Bytes,
) -> CheckResult {
    let mut entry = None;
    for _ in 0..LOOKS {
        entry = trial.read(trial.other(), key).await?;
        if old_or_new(key, old, new, entry.as_ref())? {
            break;
        }
        trial.harness.pause(LOOK_AGAIN).await;
    }
    check_writable(trial, key, entry).await
}

/// True if the key has the new value. Anything but the complete old or the complete new value is a failure.
fn old_or_new(
    key: &Key,
    old: Option<(&Bytes, &Version)>,
    new: &Bytes,
    entry: Option<&Entry>,
) -> Result<bool, Stop> {
    match (entry, old) {
        (Some(entry), _) if entry.value == *new => {
            let moved = old.is_none_or(|(_, version)| entry.version != *version);
            ensure!(moved, "{key} has the new value at the old version {}", entry.version);
            Ok(true)
        }
        (Some(entry), Some((value, version))) if entry.value == *value && entry.version == *version => {
            Ok(false)
        }
        (None, None) => Ok(false),
        (entry, _) => {
            let held = entry.map_or("nothing".to_owned(), |entry| {
                format!("{} as version {}", excerpt(&entry.value), entry.version)
            });
            fail!("{key} should hold the old entry or the new, and holds {held}")
        }
    }
}

/// Verifies that the key can still be written, whatever happened. A late write may come in between, once.
async fn check_writable(trial: &Trial<'_>, key: &Key, entry: Option<Entry>) -> CheckResult {
    let mut entry = entry;
    for _ in 0..2 {
        let value = trial.value("afterwards");
        let expect = entry.map_or(Expect::Absent, |entry| Expect::Version(entry.version));
        if let Put::Applied(applied) = trial.put(trial.writer(), key, &value, &expect).await? {
            return trial.holds(key, &value, &applied.version).await;
        }
        entry = trial.read(trial.other(), key).await?;
    }
    fail!("{key} can no longer be written: every write is a conflict")
}

/// A call that needs more polls than this is waiting for its network.
const POLLS_MAX: usize = 4;

/// Number of reads that check for a late write.
const LOOKS: usize = 3;

/// Wait between two of these reads.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);
