//! The records that the machine writes, one function per purpose.

use std::sync::Arc;

use super::{AcquireParams, Ambient};
use crate::Token;
use crate::record::{
    End, Kind, LastSuccess, Nonce, Past, Record, Revocation, State, TermProcess, Ttl, Unstoppable,
};

/// The record of a new term over `old`. If `old` was held, its term ended as `end` says.
pub(super) fn granted(
    old: &Record,
    nonce: Nonce,
    token: Token,
    end: End,
    params: &AcquireParams,
    ambient: &Ambient,
) -> Record {
    let end = end_of_revoked(old).unwrap_or(end);
    Record {
        kind: Kind::Lease,
        state: State::Held,
        term: nonce,
        token,
        ttl: Some(params.timing.ttl()),
        nonce,
        sequence: next_sequence(old),
        witness: params.witness.clone(),
        secret_hash: params.secret_hash,
        holder: Some(Arc::clone(&params.holder)),
        value: params.value.clone().unwrap_or_else(|| Arc::clone(&old.value)),
        history: if old.is_held() { with_past(old, end, ambient) } else { Arc::clone(&old.history) },
        granted_at: ambient.wall,
        written_at: ambient.wall,
        unstoppable: None,
        last_success: old.last_success,
        process: process_of(nonce, params),
        unknown: Arc::clone(&old.unknown),
    }
}

/// The renewed record of the same term, with the reason if its work cannot be stopped. A revoked record stays revoked,
/// and names the nonce of this write as the holder's last.
pub(super) fn renewed(
    old: &Record,
    nonce: Nonce,
    ttl: Ttl,
    unstoppable: Option<&Arc<str>>,
    ambient: &Ambient,
) -> Record {
    let said = |because: &Arc<str>| Arc::new(Unstoppable { term: old.term, because: Arc::clone(because) });
    Record {
        state: match &old.state {
            State::Revoked(revocation) => {
                State::Revoked(Arc::new(Revocation { nonce, ..(**revocation).clone() }))
            }
            state => state.clone(),
        },
        nonce,
        ttl: Some(ttl),
        sequence: next_sequence(old),
        written_at: ambient.wall,
        unstoppable: unstoppable.map(said).or_else(|| old.unstoppable.clone()),
        ..old.clone()
    }
}

/// The record of the same term for a process that continues it.
pub(super) fn resumed(old: &Record, nonce: Nonce, params: &AcquireParams, ambient: &Ambient) -> Record {
    Record {
        nonce,
        sequence: next_sequence(old),
        witness: params.witness.clone(),
        secret_hash: params.secret_hash,
        written_at: ambient.wall,
        process: if params.manual { with_renewals_on_request(old) } else { process_of(old.term, params) },
        ..old.clone()
    }
}

/// The process that acts under a term from now on.
fn process_of(term: Nonce, params: &AcquireParams) -> Option<Arc<TermProcess>> {
    let process = TermProcess::new(term, Arc::clone(params.process.as_ref()?));
    Some(Arc::new(if params.manual {
        process
    } else {
        // A period is at most the ttl, and may be a fraction of a millisecond.
        process.renewed_every((params.timing.period().as_millis() as u64).max(1))
    }))
}

/// The process of the term, for a handle. The process that renews by the handle is not the one that acts under the
/// term.
fn with_renewals_on_request(old: &Record) -> Option<Arc<TermProcess>> {
    let process = (**old.process.as_ref()?).clone();
    Some(Arc::new(TermProcess { renews_ms: None, ..process }))
}

/// The vacant record that a term leaves behind. It keeps token, value and history. It also keeps the latest
/// success, or replaces it.
pub(super) fn vacated(
    old: &Record,
    nonce: Nonce,
    token: Token,
    success: Option<LastSuccess>,
    ambient: &Ambient,
) -> Record {
    let end = end_of_revoked(old).unwrap_or(End::Released);
    Record {
        state: State::Vacant,
        token,
        nonce,
        sequence: next_sequence(old),
        witness: None,
        secret_hash: None,
        holder: None,
        history: with_past(old, end, ambient),
        written_at: ambient.wall,
        unstoppable: None,
        last_success: success.or(old.last_success),
        process: None,
        ..old.clone()
    }
}

/// The request to release, over the holder's own record. It keeps the holder's last nonce, which the witness lists.
pub(super) fn revoked(
    old: &Record,
    nonce: Nonce,
    because: &Arc<str>,
    params: &AcquireParams,
    ambient: &Ambient,
) -> Record {
    let revocation = Revocation {
        by: Arc::clone(params.holder.id()),
        because: Arc::clone(because),
        nonce: old.holders_nonce(),
    };
    Record {
        state: State::Revoked(Arc::new(revocation)),
        nonce,
        sequence: next_sequence(old),
        written_at: ambient.wall,
        ..old.clone()
    }
}

/// The end of the term of a revoked record, whether its holder acknowledges or not.
fn end_of_revoked(old: &Record) -> Option<End> {
    match &old.state {
        State::Revoked(by) => Some(End::Revoked { by: Arc::clone(&by.by), because: Arc::clone(&by.because) }),
        _ => None,
    }
}

/// Saturates: a foreign program may have set it to the maximum, and nothing depends on it.
pub(crate) fn next_sequence(old: &Record) -> u64 {
    old.sequence.saturating_add(1).min(Token::MAX.get())
}

fn with_past(old: &Record, end: End, ambient: &Ambient) -> Arc<[Past]> {
    let Some(holder) = &old.holder else { return Arc::clone(&old.history) };
    let past = Past {
        token: old.token,
        holder: Arc::clone(holder.id()),
        granted_at: old.granted_at,
        ended_at: ambient.wall,
        end,
    };
    let drop = (old.history.len() + 1).saturating_sub(Record::HISTORY_MAX);
    old.history[drop..].iter().cloned().chain([past]).collect()
}

#[cfg(test)]
mod tests {
    use tenure_store::StoreTime;

    use super::*;
    use crate::WallTime;

    fn ambient(millis: u64) -> Ambient {
        let wall = WallTime::from_millis(millis);
        Ambient { now: Default::default(), wall, nonce: Nonce::from_bits(u128::from(millis)), jitter: 0 }
    }

    /// A held record, written at the wall time 7.
    fn held() -> Record {
        let ambient = ambient(7);
        let mut record = Record::new(Token::new(7).unwrap(), ambient.nonce, ambient.wall);
        (record.state, record.term, record.ttl) = (State::Held, ambient.nonce, Ttl::from_millis(10_000));
        record
    }

    #[test]
    fn a_renewal_has_the_nonce_and_the_time_of_its_own_and_the_ttl_that_the_rules_give_it() {
        let (old, ambient) = (held(), ambient(9));
        let ttl = Ttl::from_millis(12_000).unwrap();
        let record = renewed(&old, ambient.nonce, ttl, None, &ambient);
        assert_eq!((record.nonce, record.ttl, record.written_at), (ambient.nonce, Some(ttl), ambient.wall));
        assert_eq!((record.term, record.token, record.sequence), (old.term, old.token, old.sequence + 1));
    }

    #[test]
    fn a_vacated_record_has_the_token_that_it_was_given_and_nothing_of_the_work_of_the_term() {
        let mut old = held();
        old.unstoppable = Some(Arc::new(Unstoppable { term: old.term, because: "it runs as root".into() }));
        let earlier = LastSuccess { token: Token::new(3).unwrap(), began: StoreTime::from_micros(3) };
        old.last_success = Some(earlier);
        let (ambient, token) = (ambient(9), Token::new(8).unwrap());
        let record = vacated(&old, ambient.nonce, token, None, &ambient);
        assert_eq!((record.token, record.written_at), (token, ambient.wall));
        assert_eq!((record.unstoppable.clone(), record.last_success), (None, Some(earlier)));
        let own = LastSuccess { token: old.token, began: StoreTime::from_micros(7) };
        assert_eq!(vacated(&old, ambient.nonce, token, Some(own), &ambient).last_success, Some(own));
    }
}
