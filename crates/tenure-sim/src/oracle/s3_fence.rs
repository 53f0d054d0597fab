use super::Judgement;

/// S3: after a write under a token was accepted by the fenced resource, no smaller one is, whatever the clocks do.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    greatest: u64,
}

impl Fence {
    /// A write was accepted.
    pub(crate) fn accepted(&mut self, token: u64) -> Judgement {
        let before = self.greatest;
        self.greatest = before.max(token);
        if token >= before {
            return Ok(());
        }
        Err(format!("the resource accepted a write under token {token} after one under token {before}"))
    }
}
