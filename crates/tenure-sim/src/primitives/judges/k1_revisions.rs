use tenure_core::machine::{Purpose, Write};
use tenure_core::record::Record;

use super::EntryWrite;
use crate::oracle::Judgement;

/// K1: a change replaces exactly the entry that it expects. `age` is the time for which the store has had `old`.
///
/// * With a revision, it replaces the entry of that revision, unless its sender knew that the entry had run out.
/// * With revision zero, it replaces no entry, or one that has run out.
/// * A renewal or a release keeps the revision.
/// * A renewal by the process that wrote the entry is sent while no participant can know that the entry has run out.
pub(super) fn replaces_what_it_expects(fact: EntryWrite, write: &Write, old: &Record, age: u64) -> Judgement {
    let (before, after) = (old.token.get(), write.record.token.get());
    match (write.purpose, fact.revision) {
        (Purpose::Grant, Some(0)) => {
            let has_run_out = old.ttl.is_some_and(|ttl| u128::from(age) >= ttl.as_duration().as_nanos());
            if !old.is_held() || has_run_out {
                return Ok(());
            }
            Err(format!("an entry was created over revision {before}, which had not run out"))
        }
        (Purpose::Grant, Some(expected)) => {
            if !old.is_held() || before != expected {
                return Err(format!("a change of revision {expected} was applied to revision {before}"));
            }
            if fact.knew_run_out {
                return Err(format!(
                    "revision {expected} was changed by a participant that knew that it had run out"
                ));
            }
            Ok(())
        }
        (Purpose::Renew | Purpose::Vacate, _) if before != after => {
            Err(format!("{:?} made revision {after} of revision {before}", write.purpose))
        }
        (Purpose::Renew, _) if fact.late => Err(format!(
            "revision {before} was renewed by its writer when another participant may have known that it had run out"
        )),
        _ => Ok(()),
    }
}
