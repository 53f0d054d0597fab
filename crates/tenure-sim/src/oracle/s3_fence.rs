use super::Judgement;

/// S3: after the fenced resource has accepted a write under a token, it accepts none under a smaller token, whatever
/// the clocks do.
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
