//! Values come back unchanged.

use bytes::Bytes;
use tenure_store::{Expect, Reason, StoreError};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, fail};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "values",
    checks: &[
        check!("the empty value comes back", comes_back, Bytes::new()),
        check!("every byte comes back, text or not", every_byte),
        check!("the largest value comes back whole", largest),
        check!("a larger value is refused as invalid and nothing is written", too_large),
    ],
};

/// A text column, or JSON on the way, changes bytes that are not UTF-8; other systems stop at a zero or trim white
/// space.
async fn every_byte(trial: &Trial<'_>) -> CheckResult {
    let all: Vec<u8> = (0..=u8::MAX).chain(*b"\xff\xfe \r\n\0 \t\n").collect();
    comes_back(trial, all.into()).await
}

async fn largest(trial: &Trial<'_>) -> CheckResult {
    let size = trial.promises.value_max.min(TRIED_MAX);
    if size < trial.promises.value_max {
        trial.note(format!("tried {size} of {} bytes", trial.promises.value_max));
    }
    trial.require(size > 0, "any room for a value")?;
    comes_back(trial, pattern(size)).await
}

/// Writes the value, replaces it with its reverse, and writes it again.
async fn comes_back(trial: &Trial<'_>, value: Bytes) -> CheckResult {
    let key = trial.key("value");
    let created = trial.create(&key, &value).await?;
    trial.holds(&key, &value, &created).await?;
    let backwards: Bytes = value.iter().rev().copied().collect();
    if backwards != value {
        let version = trial.replace(&key, &backwards, &created).await?;
        trial.holds(&key, &backwards, &version).await?;
    }
    Ok(())
}

/// "Certainly no effect" is essential: no process can read a truncated record.
async fn too_large(trial: &Trial<'_>) -> CheckResult {
    let max = trial.promises.value_max;
    if max >= TRIED_MAX {
        return Err(Stop::Skipped(format!("{max} bytes are too many to try one more")));
    }
    let value = trial.value("fits");
    let existing = trial.key("existing");
    let version = trial.create(&existing, &value).await?;
    let missing = trial.key("missing");
    for (key, expect) in [(&existing, Expect::Version(version.clone())), (&missing, Expect::Absent)] {
        trial.pace(key).await;
        match trial.writer().put(key, pattern(max + 1), expect).await {
            Err(StoreError::Refused(refused)) if refused.reason == Reason::Invalid => {}
            answer => {
                fail!("{} bytes, one more than promised, were answered with {answer:?}", max + 1);
            }
        }
    }
    trial.holds(&existing, &value, &version).await?;
    trial.is_absent(&missing).await
}

/// Bytes in which a missing or doubled piece is visible.
fn pattern(size: usize) -> Bytes {
    (0..size).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Some stores promise larger values, but Tenure needs none: a record has a few kilobytes.
const TRIED_MAX: usize = 4 << 20;
