use crate::oracle::Judgement;

/// L6: under fair contention, an actor that waits has its turn before the others had theirs many times.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    missed: u64,
}

impl Turns {
    /// The actor had its turn, or began to wait.
    pub(crate) fn begin(&mut self) {
        self.missed = 0;
    }

    /// Another of these many actors had its turn while this one waited.
    pub(crate) fn miss(&mut self, actors: u64) -> Judgement {
        self.missed += 1;
        let most = TERMS_PER_ACTOR * actors;
        if self.missed <= most {
            return Ok(());
        }
        Err(format!("an actor missed {} terms of others, more than {most}", self.missed))
    }
}

const TERMS_PER_ACTOR: u64 = 20;
