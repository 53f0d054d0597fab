use tenure_core::machine::Content;
use tenure_core::record::Nonce;

use super::Judgement;

/// What the world knows about the write that a lease is told to have succeeded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFate {
    /// It was sent by this lease and applied.
    Applied,
    /// It was sent by this lease and never applied.
    NotApplied,
    /// It was never sent by this lease.
    NotOwn,
}

/// S5, first half: whoever is told *granted* or *renewed* has a write of its own in the store's history.
pub(crate) fn really_applied(told: &str, found: WriteFate) -> Judgement {
    match found {
        WriteFate::Applied => Ok(()),
        WriteFate::NotApplied => Err(format!("{told} was told, and the write was never applied")),
        WriteFate::NotOwn => Err(format!("{told} was told, and the write is not one of that lease")),
    }
}

/// S5, second half: whoever is told that something else is there in its place is told the truth: the store holds nothing of its term, and what was read was not
/// its own write.
pub(crate) fn really_superseded(term: Nonce, present: &Content, read_own: bool) -> Judgement {
    if read_own {
        return Err(
            "a lease was told that something else is there in its place, and it was its own write".to_owned()
        );
    }
    match present {
        Content::Record(record, _) if record.is_held() && record.term == term => Err(format!(
            "a lease was told that something else is there in its place, and the store holds its term, {term}"
        )),
        _ => Ok(()),
    }
}
