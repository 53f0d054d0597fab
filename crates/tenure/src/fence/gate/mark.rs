use tenure_core::Token;

use super::atomic::{AtomicU64, Ordering};

/// The greatest token that was offered, as one atomic word. It only grows. Zero stands for none.
#[derive(Debug, Default)]
pub(crate) struct GateMark(AtomicU64);

impl GateMark {
    /// The greatest token; zero before the first one.
    #[inline]
    pub(crate) fn highest(&self) -> Token {
        Token::new(self.0.load(Ordering::SeqCst)).expect("only tokens are stored")
    }

    /// Raises the mark to this token. The error is a greater token that has been there.
    ///
    /// An equal token, which is the usual case, writes nothing. So the threads of one holder do not contend for the word.
    #[inline]
    pub(crate) fn raise(&self, token: Token) -> Result<(), Token> {
        let mut highest = self.highest();
        if highest < token {
            let before = self.0.fetch_max(token.get(), Ordering::SeqCst);
            highest = Token::new(before).expect("only tokens are stored");
        }
        if highest > token { Err(highest) } else { Ok(()) }
    }
}
