use super::Judgement;

/// S8: an observer never shows an older token after a newer one, and after quiet it shows the true one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    token: u64,
}

impl Shown {
    /// The observer shows a token.
    pub(crate) fn shows(&mut self, token: u64) -> Judgement {
        let before = self.token;
        self.token = token;
        if token >= before {
            return Ok(());
        }
        Err(format!("an observer showed token {token} after token {before}"))
    }

    /// The judgement after quiet. `present` is the token in the store; an observer rightly does not show one that went
    /// back.
    pub(crate) fn at_the_end(&self, present: u64) -> Judgement {
        if present <= self.token {
            return Ok(());
        }
        Err(format!("after quiet an observer shows token {}, but the store has {present}", self.token))
    }
}
