use crate::oracle::Judgement;

/// L5: a contender that waits in a full group makes at most four reads per ttl of the records, those of the size
/// included. It waits for a group of one slot as for a lease, and makes one more.
pub(crate) fn reads_are_few(reads: u64, slots: u16, span: u64, ttl: u64) -> Judgement {
    let per_ttl = if slots == 1 { READS_PER_TTL + 1 } else { READS_PER_TTL };
    // Two more, for calls that begin before the span and end in it.
    let most = per_ttl * span.div_ceil(ttl) + 2;
    if reads <= most {
        return Ok(());
    }
    let ttls = span / ttl;
    Err(format!("a contender made {reads} reads of a full group in {ttls} ttl, more than {most}"))
}

const READS_PER_TTL: u64 = 4;
