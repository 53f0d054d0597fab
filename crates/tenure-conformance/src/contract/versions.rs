//! Versions: the stamp of one write of one key.

use std::collections::HashMap;

use bytes::Bytes;
use tenure_store::{Key, Version};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "versions",
    checks: &[
        check!(
            "the version that a write is given is the version that every reader sees",
            one_version_for_all
        ),
        check!("different bytes never have a version that was there before", never_repeat),
        check!("equal bytes written again have a new version", equal_bytes),
        check!("bytes that come back (A, B, A) do not bring their version back", there_and_back),
        check!(
            "an entry that was deleted and created again has a new version",
            deletion_does_not_restart_them
        ),
    ],
};

async fn one_version_for_all(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("one");
    let mut version = trial.create(&key, &trial.value("first")).await?;
    for _ in 0..trial.repeats() {
        for connection in trial.connections() {
            let seen = trial.read(&**connection, &key).await?.map(|entry| entry.version);
            ensure!(seen.as_ref() == Some(&version), "written as version {version} and read as {seen:?}");
        }
        version = trial.replace(&key, &trial.value("next"), &version).await?;
    }
    Ok(())
}

/// Every write of Tenure contains a nonce, so every store must provide this much. An inode, a time and a size are not
/// enough: inodes are reused at once, times tick slowly, and records often have equal lengths.
async fn never_repeat(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("chain");
    let values = (0..trial.repeats() * 5).map(|_| trial.value("same length")).collect();
    write_all_different(trial, &key, values).await
}

/// An ETag that is the MD5 of the content fails here, and must not be declared as unique.
async fn equal_bytes(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.unique_versions, "unique versions")?;
    let value = trial.value("always the same");
    let values = (0..trial.repeats()).map(|_| value.clone()).collect();
    write_all_different(trial, &trial.key("equal"), values).await
}

/// The classic way in which a holder that slept replaces a record that it never saw.
async fn there_and_back(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.unique_versions, "unique versions")?;
    let pair = [trial.value("a"), trial.value("b")];
    let values = (0..trial.repeats()).map(|number| pair[number % 2].clone()).collect();
    write_all_different(trial, &trial.key("there-and-back"), values).await
}

/// ZooKeeper counts the versions of a node from zero, and Consul its lock index from one, each time it is created. A
/// holder from before the deletion would replace another holder's grant.
async fn deletion_does_not_restart_them(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("deleted");
    let mut seen = SeenVersions::of(trial);
    for _ in 0..trial.repeats().min(5) {
        let version = trial.create(&key, &trial.value("created")).await?;
        seen.add(&version)?;
        seen.add(&trial.replace(&key, &trial.value("replaced"), &version).await?)?;
        trial.harness.delete(&key).await.or_skip()?;
    }
    Ok(())
}

async fn write_all_different(trial: &Trial<'_>, key: &Key, values: Vec<Bytes>) -> CheckResult {
    let mut seen = SeenVersions::of(trial);
    let mut current: Option<Version> = None;
    for value in &values {
        let version = match &current {
            None => trial.create(key, value).await?,
            Some(version) => trial.replace(key, value, version).await?,
        };
        seen.add(&version)?;
        current = Some(version);
    }
    trial.note(format!("{} writes", values.len()));
    Ok(())
}

/// All versions of one key so far.
struct SeenVersions {
    writes: usize,
    first: HashMap<Version, usize>,
    impossible: Version,
}

impl SeenVersions {
    fn of(trial: &Trial<'_>) -> Self {
        Self { writes: 0, first: HashMap::new(), impossible: trial.writer().identity().impossible_version }
    }

    fn add(&mut self, version: &Version) -> CheckResult {
        self.writes += 1;
        ensure!(!version.as_str().is_empty(), "a write was given the empty version");
        ensure!(*version != self.impossible, "a write was given the impossible version {version}");
        let earlier = self.first.insert(version.clone(), self.writes);
        ensure!(
            earlier.is_none(),
            "write {} of one key has the version {version} of write {}",
            self.writes,
            earlier.unwrap_or_default()
        );
        Ok(())
    }
}
