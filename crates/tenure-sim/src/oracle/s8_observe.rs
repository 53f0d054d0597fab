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

    /// All is quiet, and this is the token that is there. One that has gone back is rightly not shown.
    pub(crate) fn at_the_end(&self, present: u64) -> Judgement {
        if present <= self.token {
            return Ok(());
        }
        Err(format!("after quiet an observer shows token {}, and {present} is there", self.token))
    }
}
