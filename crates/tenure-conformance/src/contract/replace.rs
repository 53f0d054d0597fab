//! `Expect::Version`.

use tenure_store::Expect;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure, fail};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "replace",
    checks: &[
        check!("a replace of the current version is applied and changes the version", current_is_replaced),
        check!(
            "a replace of a version that was read over another connection is applied",
            read_version_is_replaced
        ),
        check!(
            "a replace of an earlier version is a conflict and leaves bytes and version",
            stale_is_a_conflict
        ),
        check!("a replace of the impossible version is a conflict", impossible_is_a_conflict),
        check!(
            "a replace of a key that was never there is a conflict and creates nothing",
            missing_is_a_conflict
        ),
        check!(
            "a replace of an entry that has gone is a conflict and creates nothing",
            deleted_is_a_conflict
        ),
    ],
};

async fn current_is_replaced(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let key = trial.key("current");
    let mut version = trial.create(&key, &trial.value("first")).await?;
    for _ in 0..trial.repeats() {
        let value = trial.value("next");
        let next = trial.replace(&key, &value, &version).await?;
        ensure!(next != version, "a replace of {key} left its version {version} as it was");
        trial.holds(&key, &value, &next).await?;
        version = next;
    }
    Ok(())
}

/// DigitalOcean Spaces compares `If-Match` only when its ETag comes without the quotes that it had in the answer. A
/// version must be valid for every client that has read it.
async fn read_version_is_replaced(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let key = trial.key("read");
    trial.create(&key, &trial.value("first")).await?;
    let Some(entry) = trial.read(trial.other(), &key).await? else {
        fail!("{key} was created and is not there")
    };
    let value = trial.value("second");
    let version = trial.replace(&key, &value, &entry.version).await?;
    trial.holds(&key, &value, &version).await
}

/// Repeated many times: every published build of MinIO skips the condition when it cannot read the old entry from
/// enough disks, which happens only rarely.
async fn stale_is_a_conflict(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let key = trial.key("stale");
    let oldest = trial.create(&key, &trial.value("first")).await?;
    let older = trial.replace(&key, &trial.value("second"), &oldest).await?;
    let value = trial.value("third");
    let version = trial.replace(&key, &value, &older).await?;
    for number in 0..trial.repeats() {
        let store = trial.connection(number);
        for stale in [&oldest, &older] {
            let expect = Expect::Version(stale.clone());
            trial.conflict(&*store, &key, &expect, "a replace of an earlier version").await?;
            trial.holds(&key, &value, &version).await?;
        }
    }
    Ok(())
}

/// The check at connect consists of such writes, so they must be harmless and answered.
async fn impossible_is_a_conflict(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let impossible = Expect::Version(trial.writer().identity().impossible_version);
    let key = trial.key("existing");
    let value = trial.value("first");
    let version = trial.create(&key, &value).await?;
    trial.conflict(trial.other(), &key, &impossible, "a replace of the impossible version").await?;
    trial.holds(&key, &value, &version).await?;

    let missing = trial.key("missing");
    trial.conflict(trial.other(), &missing, &impossible, "a replace of the impossible version").await?;
    trial.is_absent(&missing).await
}

/// MinIO before 2025-09-06 created the object that `If-Match` did not find.
async fn missing_is_a_conflict(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let other = trial.create(&trial.key("other"), &trial.value("first")).await?;
    let missing = trial.key("missing");
    let expect = Expect::Version(other);
    trial.conflict(trial.writer(), &missing, &expect, "a replace of a missing key").await?;
    trial.is_absent(&missing).await
}

/// Kubernetes creates the Lease that a PUT does not find, unless the PUT names its uid as well.
async fn deleted_is_a_conflict(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let key = trial.key("deleted");
    let version = trial.create(&key, &trial.value("first")).await?;
    trial.harness.delete(&key).await.or_skip()?;
    let expect = Expect::Version(version);
    trial.conflict(trial.writer(), &key, &expect, "a replace of an entry that has gone").await?;
    trial.is_absent(&key).await
}
