/// A resource behind a fence: it stores the greatest token and refuses smaller ones.
#[derive(Debug, Default)]
pub(super) struct Resource {
    greatest: u64,
    /// True if the fence is missing.
    open: bool,
}

impl Resource {
    pub(super) fn new(open: bool) -> Self {
        Self { greatest: 0, open }
    }

    /// Accepts or refuses a write under this token.
    pub(super) fn write(&mut self, token: u64) -> bool {
        let accepted = self.open || token >= self.greatest;
        self.greatest = self.greatest.max(token);
        accepted
    }
}
