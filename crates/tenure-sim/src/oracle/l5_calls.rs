use tenure_core::machine::RENEWAL_CALLS;

use super::Judgement;

/// L5, first half: a waiting contender makes at most five store calls per ttl of the record that it waits for.
pub(crate) fn calls_are_few(calls: u64, span: u64, ttl: u64) -> Judgement {
    // Two more, for calls that begin before the span and end in it.
    let most = CALLS_PER_TTL * span.div_ceil(ttl) + 2;
    if calls <= most {
        return Ok(());
    }
    let ttls = span / ttl;
    Err(format!("a waiting contender made {calls} store calls in {ttls} ttl, more than {most}"))
}

/// L5 for a holder: from one confirmed write to the next, or to the loss, it makes few calls, however fast they fail.
pub(crate) fn holders_calls_are_few(calls: u64) -> Judgement {
    // Where only writes fail, a read that succeeds comes before each of them. A read and a write succeed in the end.
    let most = u64::from(2 * RENEWAL_CALLS + 2);
    if calls <= most {
        return Ok(());
    }
    Err(format!("a holder made {calls} store calls since its latest confirmed write, more than {most}"))
}

/// L5, second half: after an outage no lease makes more than twice as many calls, whether it holds, waits or releases.
pub(crate) fn calls_after_outage_are_few(calls: u64, span: u64, ttl: u64) -> Judgement {
    let most = 2 * (CALLS_PER_TTL * span.div_ceil(ttl) + 2);
    if calls <= most {
        return Ok(());
    }
    let ttls = span / ttl;
    Err(format!("after the outage a lease made {calls} store calls in {ttls} ttl, more than {most}"))
}

const CALLS_PER_TTL: u64 = 5;
