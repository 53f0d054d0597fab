//! `Expect::Absent`.

use tenure_store::Expect;

use crate::check::{Clause, check};
use crate::stop::CheckResult;
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "create",
    checks: &[
        check!("a create of an absent key is applied", absent_is_created),
        check!("a create over an entry is a conflict and leaves bytes and version", existing_stays),
        check!("a create over a replaced entry is a conflict too", replaced_stays),
        check!("after a deletion a create is applied again", deleted_is_created),
    ],
};

async fn absent_is_created(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_create, "atomic create")?;
    for number in 0..trial.repeats() {
        let key = trial.key(&format!("absent-{number}"));
        trial.is_absent(&key).await?;
        let value = trial.value("created");
        let version = trial.create(&key, &value).await?;
        trial.holds(&key, &value, &version).await?;
    }
    Ok(())
}

/// Garage and the S3 interface of Google Cloud Storage accept `If-None-Match: *` and ignore it. The right answer alone
/// proves nothing either: the check also reads the stored value.
async fn existing_stays(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_create, "atomic create")?;
    let key = trial.key("existing");
    let value = trial.value("first");
    let version = trial.create(&key, &value).await?;
    for number in 0..trial.repeats() {
        let store = trial.connection(number);
        trial.conflict(&*store, &key, &Expect::Absent, "a create over an entry").await?;
        trial.holds(&key, &value, &version).await?;
    }
    Ok(())
}

async fn replaced_stays(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_create, "atomic create")?;
    let key = trial.key("replaced");
    let created = trial.create(&key, &trial.value("first")).await?;
    let value = trial.value("second");
    let version = trial.replace(&key, &value, &created).await?;
    trial.conflict(trial.other(), &key, &Expect::Absent, "a create over a replaced entry").await?;
    trial.holds(&key, &value, &version).await
}

async fn deleted_is_created(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_create, "atomic create")?;
    let key = trial.key("deleted");
    trial.create(&key, &trial.value("before")).await?;
    trial.harness.delete(&key).await.or_skip()?;
    trial.is_absent(&key).await?;
    let value = trial.value("after");
    let version = trial.create(&key, &value).await?;
    trial.holds(&key, &value, &version).await
}
