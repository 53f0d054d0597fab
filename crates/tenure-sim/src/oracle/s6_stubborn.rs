use tenure_core::record::Nonce;

use super::Judgement;

/// S6: a term whose work cannot be stopped is not revoked. Its belief would end, but its work would continue.
pub(crate) fn leaves_alone(term: Nonce, said: bool) -> Judgement {
    if said { Err(format!("term {term} was revoked although its work cannot be stopped")) } else { Ok(()) }
}

/// S6: a contender that heeds the tree does not take over while the work of the former term is alive.
pub(crate) fn takes_nothing_alive(term: Nonce, alive: bool) -> Judgement {
    if alive { Err(format!("term {term} was taken over while its work was alive")) } else { Ok(()) }
}

/// S5: a stealer learns that work cannot be stopped only if the holder of that same term has said so.
pub(crate) fn really_said(term: Nonce, said: bool) -> Judgement {
    if said { Ok(()) } else { Err(format!("the holder of term {term} never said that it cannot stop")) }
}
