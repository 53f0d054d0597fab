use tenure_core::machine::{Content, Purpose};
use tenure_core::record::{Record, State, check};

use super::Judgement;

/// S9, first half: a foreign record is never overwritten.
pub(crate) fn overwrites_nothing_foreign(before: &Content) -> Judgement {
    match before {
        Content::Foreign { what, .. } => Err(format!("{what} was overwritten")),
        Content::Absent | Content::Record(..) => Ok(()),
    }
}

/// S9, second half: every written record follows the rules of the format, and keeps every part of its predecessor that
/// its purpose does not change.
pub(crate) fn follows(purpose: Purpose, old: &Record, new: &Record) -> Judgement {
    check(new).map_err(|foreign| format!("{purpose:?} wrote an invalid record: {foreign}"))?;
    let same_term = (old.term, old.token, old.ttl) == (new.term, new.token, new.ttl);
    let same_holder = old.holder == new.holder && old.witness == new.witness;
    let kept = match purpose {
        Purpose::Grant => new.state == State::Held && new.term == new.nonce && old.term != new.term,
        Purpose::Resume => new.state == State::Held && same_term && old.holder == new.holder,
        Purpose::Renew => {
            // Only a holder that cannot stop its work renews a revoked record, and the record stays revoked.
            let same_state = match (&old.state, &new.state) {
                (State::Revoked(before), State::Revoked(after)) => {
                    (&before.by, &before.because, new.nonce) == (&after.by, &after.because, after.nonce)
                        && new.cannot_stop().is_some()
                }
                (State::Held, State::Held) => true,
                _ => false,
            };
            same_state && same_term && same_holder
        }
        Purpose::Revoke => {
            matches!(&new.state, State::Revoked(_))
                && same_term
                && same_holder
                && old.holders_nonce() == new.holders_nonce()
        }
        Purpose::Vacate => new.state == State::Vacant && same_term,
        // A record is planted where there is none, and a purpose that this oracle does not know has none to keep.
        _ => false,
    };
    let counted = new.sequence == old.sequence + 1 && new.nonce != old.nonce && new.value == old.value;
    if kept && counted {
        return Ok(());
    }
    Err(format!("{purpose:?} wrote a record that does not follow from the one before: {old:?}, then {new:?}"))
}
