use super::Judgement;

/// L5: a contender that waits makes at most five store calls per ttl of the record it waits for.
pub(crate) fn calls_are_few(calls: u64, span: u64, ttl: u64) -> Judgement {
    // Two more, for what begins before the span and ends in it.
    let most = CALLS_PER_TTL * span.div_ceil(ttl) + 2;
    if calls <= most {
        return Ok(());
    }
    let ttls = span / ttl;
    Err(format!("a waiting contender made {calls} store calls in {ttls} ttl, and {most} are the most"))
}

/// L5, the other half: after an outage nobody makes more than twice as many, whether it holds, waits or lets go.
pub(crate) fn nobody_stampedes(calls: u64, span: u64, ttl: u64) -> Judgement {
    let most = 2 * (CALLS_PER_TTL * span.div_ceil(ttl) + 2);
    if calls <= most {
        return Ok(());
    }
    let ttls = span / ttl;
    Err(format!("after the outage somebody made {calls} store calls in {ttls} ttl, and {most} are the most"))
}

const CALLS_PER_TTL: u64 = 5;
