use tenure_core::machine::Content;
use tenure_core::record::Nonce;

use super::Judgement;

/// True state of a write that the machine reports as successful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFate {
    /// This lease sent it, and the store applied it.
    Applied,
    /// This lease sent it, and the store never applied it.
    NotApplied,
    /// This lease never sent it.
    NotOwn,
}

/// S5, first half: a lease that is reported as *granted* or *renewed* has its own write in the store's history.
pub(crate) fn really_applied(told: &str, found: WriteFate) -> Judgement {
    match found {
        WriteFate::Applied => Ok(()),
        WriteFate::NotApplied => Err(format!("the machine reported {told}, but the write was never applied")),
        WriteFate::NotOwn => Err(format!("the machine reported {told}, but that lease never sent the write")),
    }
}

/// S5, second half: a lease that is reported as superseded really is. The store holds nothing of its term, and the
/// record that was read is not its own write.
pub(crate) fn really_superseded(term: Nonce, present: &Content, read_own: bool) -> Judgement {
    if read_own {
        return Err("a lease was reported as superseded, but it had read its own write".to_owned());
    }
    match present {
        Content::Record(record, _) if record.is_held() && record.term == term => {
            Err(format!("a lease was reported as superseded, but the store holds its term, {term}"))
        }
        _ => Ok(()),
    }
}
