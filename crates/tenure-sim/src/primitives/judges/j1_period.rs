use tenure_core::record::{LastSuccess, Nonce, Record};
use tenure_store::StoreTime;

use crate::oracle::Judgement;
use crate::time::MICRO;

/// J1: no job is granted before the period after its last success is over, by the store's clock. Contenders advance the
/// store's time on their own clocks, so they are early by up to `tolerance`. Both spans are in nanoseconds.
pub(crate) fn is_due(last: LastSuccess, now: StoreTime, period: u64, tolerance: u64) -> Judgement {
    let since = now.as_micros().saturating_sub(last.began.as_micros()) * MICRO;
    if since + tolerance >= period {
        return Ok(());
    }
    Err(format!("a job was granted {since} ns after its last success began, and its period is {period} ns"))
}

/// J1: only a success that the holder has reported is recorded.
pub(crate) fn was_reported(record: &Record, reported: &[Nonce]) -> Judgement {
    match record.last_success {
        Some(last) if last.token != record.token || !reported.contains(&record.term) => {
            Err(format!("a release recorded a success of token {} that no holder reported", last.token))
        }
        Some(_) => Ok(()),
        None => Err("a write removed the last success".to_owned()),
    }
}
