use tenure_core::record::Nonce;

use super::Judgement;

/// S6: a term whose work cannot be stopped is not revoked. Its belief would end, and its work would not.
pub(crate) fn leaves_alone(term: Nonce, said: bool) -> Judgement {
    if said { Err(format!("term {term} was revoked although its work cannot be stopped")) } else { Ok(()) }
}

/// S6: a contender that heeds the tree takes nothing while the work of the former term is alive.
pub(crate) fn takes_nothing_alive(term: Nonce, alive: bool) -> Judgement {
    if alive { Err(format!("term {term} was succeeded while its work was alive")) } else { Ok(()) }
}

/// S5: a stealer is told only what the holder of that very term said.
pub(crate) fn really_said(term: Nonce, said: bool) -> Judgement {
    if said { Ok(()) } else { Err(format!("the holder of term {term} never said that it cannot stop")) }
}
