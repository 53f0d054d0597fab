use crate::oracle::Judgement;

/// L6: under fair contention, a campaigner that waits is elected before the others were elected many times.
#[derive(Debug, Default)]
pub(in crate::primitives) struct Turns {
    missed: u64,
}

impl Turns {
    /// The campaigner was elected, or began to wait.
    pub(in crate::primitives) fn begin(&mut self) {
        self.missed = 0;
    }

    /// Another of these many campaigners was elected while this one waited.
    pub(in crate::primitives) fn miss(&mut self, campaigners: u64) -> Judgement {
        self.missed += 1;
        let most = TERMS_PER_CAMPAIGNER * campaigners;
        if self.missed <= most {
            return Ok(());
        }
        Err(format!("a campaigner missed {} terms of others, more than {most}", self.missed))
    }
}

/// A node that releases lets the others try first, so the terms go round.
const TERMS_PER_CAMPAIGNER: u64 = 20;
