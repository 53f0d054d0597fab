//! The guarantees that the store declares.

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "guarantees",
    checks: &[
        check!("everything that leases need is promised", enough_for_leases),
        check!("every connection promises the same", same_everywhere),
        check!("a promised watch is there", watch_is_there),
        check!("the store has a human-readable name, on one line", has_a_name),
    ],
};

/// Not a failure: a store may promise less, and is then refused at connect.
async fn enough_for_leases(trial: &Trial<'_>) -> CheckResult {
    let missing = trial.promises.missing_for_leases();
    trial.require(missing.is_empty(), &missing.join(", "))
}

async fn same_everywhere(trial: &Trial<'_>) -> CheckResult {
    for connection in trial.connections() {
        let promises = connection.guarantees();
        ensure!(
            promises == trial.promises,
            "one connection promises {:?}, another {promises:?}",
            trial.promises
        );
    }
    Ok(())
}

async fn watch_is_there(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.watch, "a watch")?;
    let prefix = tenure_store::Prefix::of(&trial.key("watched"));
    ensure!(trial.writer().watch(&prefix).is_some(), "a watch is promised and there is none");
    Ok(())
}

async fn has_a_name(trial: &Trial<'_>) -> CheckResult {
    let name = trial.writer().to_string();
    ensure!(!name.trim().is_empty(), "the name is empty");
    ensure!(!name.chars().any(char::is_control), "the name has control characters in it: {name:?}");
    Ok(())
}
