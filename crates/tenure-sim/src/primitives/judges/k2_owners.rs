use tenure_core::machine::{Purpose, Write};
use tenure_core::record::Record;

use super::EntryWrite;
use crate::oracle::Judgement;

/// K2: only the owner of an entry renews or releases it. The owner is the participant with its secret.
pub(super) fn only_by_its_owner(fact: EntryWrite, write: &Write, old: &Record) -> Judgement {
    let is_its_own = old.secret_hash == Some(fact.owner);
    if is_its_own || !matches!(write.purpose, Purpose::Renew | Purpose::Vacate) {
        return Ok(());
    }
    Err(format!("{:?} of revision {} was applied for another participant", write.purpose, old.token))
}
