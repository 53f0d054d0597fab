//! An acknowledged write is kept.

use std::sync::Arc;

use bytes::Bytes;
use tenure_store::{Expect, Key, Put, Store, Version};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "keeps",
    checks: &[
        check!("acknowledged writes are still there after many others", after_others),
        check!("acknowledged writes survive a restart, each with its version", after_a_restart),
    ],
};

async fn after_others(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.keeps_acknowledged, "keeping acknowledged writes")?;
    let written = write_some(trial).await?;
    for (key, value, version) in &written {
        trial.holds(key, value, version).await?;
    }
    trial.note(format!("{} keys", written.len()));
    Ok(())
}

/// Redis without a log loses everything at a restart. At a power failure Redis with the default log loses one second,
/// and NATS by default two minutes. A restart alone shows the first kind; to find the others, cut the power.
async fn after_a_restart(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.keeps_acknowledged, "keeping acknowledged writes")?;
    trial.require(trial.promises.linearizable_reads, "linearizable reads")?;
    let mut written = write_some(trial).await?;
    trial.harness.restart().await.or_skip()?;
    let store = trial.harness.open().await;
    for (key, value, version) in &mut written {
        let Some(entry) = trial.read(&*store, key).await? else {
            fail!("{key}, acknowledged as version {version}, is gone after the restart");
        };
        ensure!(entry.value == *value, "{key} holds something else after the restart");
        if trial.versions_name_run {
            let (late, expect) = (trial.value("late"), Expect::Version(version.clone()));
            let put = trial.put(&*store, key, &late, &expect).await?;
            ensure!(
                matches!(put, Put::Conflict(_)),
                "{key} was replaced at a version from before the restart, {version}"
            );
            *version = entry.version;
            continue;
        }
        ensure!(
            entry.version == *version,
            "{key} had version {version} before the restart and has {} after it",
            entry.version
        );
    }
    still_writable(trial, store, &written).await
}

/// A holder that survives the restart renews the record that it wrote before.
async fn still_writable(
    trial: &Trial<'_>,
    store: Arc<dyn Store>,
    written: &[(Key, Bytes, Version)],
) -> CheckResult {
    for (key, _, version) in written {
        let value = trial.value("after the restart");
        let expect = Expect::Version(version.clone());
        let Put::Applied(applied) = trial.put(&*store, key, &value, &expect).await? else {
            fail!("{key} cannot be replaced at the version it had before the restart");
        };
        ensure!(applied.version != *version, "{key} was replaced and kept its version {version}");
        let entry = trial.read(&*store, key).await?;
        ensure!(entry.is_some_and(|entry| entry.value == value), "{key} does not hold what was written last");
    }
    Ok(())
}

/// Creates some entries, and replaces every second one.
async fn write_some(trial: &Trial<'_>) -> Result<Vec<(Key, Bytes, Version)>, Stop> {
    let mut written = Vec::new();
    for number in 0..trial.repeats() {
        let key = trial.key(&format!("kept-{number}"));
        let mut value = trial.value("created");
        let mut version = trial.create(&key, &value).await?;
        if number % 2 == 1 {
            value = trial.value("replaced");
            version = trial.replace(&key, &value, &version).await?;
        }
        written.push((key, value, version));
    }
    Ok(written)
}
