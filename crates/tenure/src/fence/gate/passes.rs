use tenure_core::Token;

/// The passes that are in use. All of them have the same token: a pass of a greater one is given only after they have
/// ended, and the mark refuses a smaller one.
#[derive(Debug)]
pub(crate) struct Passes {
    /// The token of the passes; without a meaning while there are none.
    token: Token,
    count: usize,
}

impl Passes {
    /// None.
    pub(crate) fn new() -> Self {
        Self { token: Token::ZERO, count: 0 }
    }

    /// Begins a pass, unless one of another token is in use. True if it began.
    pub(crate) fn begin(&mut self, token: Token) -> bool {
        if self.count > 0 && self.token != token {
            return false;
        }
        self.token = token;
        self.count += 1;
        true
    }

    /// Ends a pass. True if it was the last one.
    pub(crate) fn end(&mut self) -> bool {
        self.count -= 1;
        self.count == 0
    }
}
