//! Results of `get`.

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "reads",
    checks: &[
        check!("a key that was never written holds nothing", missing_is_none),
        check!("a write is seen at once over every connection", writes_are_seen_everywhere),
        check!("reading changes nothing", reading_changes_nothing),
    ],
};

async fn missing_is_none(trial: &Trial<'_>) -> CheckResult {
    for connection in trial.connections() {
        let entry = trial.read(&**connection, &trial.key("never")).await?;
        ensure!(entry.is_none(), "a key that was never written holds {entry:?}");
    }
    Ok(())
}

/// Replicas answer reads on NATS (direct get), ZooKeeper, Consul by default and Tigris' global buckets. The first read
/// after the write is the one that counts, and each connection reads before it could have learned anything.
async fn writes_are_seen_everywhere(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("seen");
    let mut version = None;
    for round in 0..trial.repeats() {
        let value = trial.value("newest");
        let newest = match &version {
            None => trial.create(&key, &value).await?,
            Some(version) => trial.replace(&key, &value, version).await?,
        };
        // In every round another connection reads first.
        for offset in 0..trial.connections().len() {
            let number = (round + offset) % trial.connections().len();
            let entry = trial.read(&*trial.connection(number), &key).await?;
            ensure!(
                entry.as_ref().is_some_and(|entry| entry.value == value && entry.version == newest),
                "version {newest} was written, and then connection {number} saw {}",
                entry.map_or("nothing".to_owned(), |entry| format!("version {}", entry.version)),
            );
        }
        version = Some(newest);
    }
    Ok(())
}

async fn reading_changes_nothing(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("read");
    let value = trial.value("first");
    let version = trial.create(&key, &value).await?;
    for number in 0..trial.repeats() {
        trial.read(&*trial.connection(number), &key).await?;
    }
    trial.holds(&key, &value, &version).await
}
