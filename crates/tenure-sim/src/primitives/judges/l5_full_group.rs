use crate::oracle::Judgement;

/// L5: a contender that waits in a full group makes at most four reads per ttl of the records, those of the size
/// included.
pub(in crate::primitives) fn reads_are_few(reads: u64, span: u64, ttl: u64) -> Judgement {
    // Two more, for calls that begin before the span and end in it.
    let most = READS_PER_TTL * span.div_ceil(ttl) + 2;
    if reads <= most {
        return Ok(());
    }
    let ttls = span / ttl;
    Err(format!("a contender made {reads} reads of a full group in {ttls} ttl, more than {most}"))
}

const READS_PER_TTL: u64 = 4;
