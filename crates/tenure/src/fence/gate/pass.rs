use std::fmt;

use super::Gate;
use crate::fence::FencingToken;

/// The permission for one write behind a [`Gate`]. While it exists, no write under a greater token begins.
///
/// It covers what this process does until the pass ends. A statement that was sent to a database before that, and was not
/// answered, may still be applied later: wait for the answer, or let the database check the token, too.
///
/// It ends when it is dropped, also by a panic or by the end of a future that owns it. A pass that is leaked
/// ([`std::mem::forget`]) never ends, and then no greater token enters until the process restarts.
#[must_use = "the pass ends when it is dropped: keep it until the write has ended"]
pub struct Pass {
    gate: Gate,
    token: FencingToken,
}

impl Pass {
    pub(super) fn new(gate: Gate, token: FencingToken) -> Self {
        Self { gate, token }
    }

    /// The token of the write.
    pub fn token(&self) -> &FencingToken {
        &self.token
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.end_pass();
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass({} at {})", self.token, self.gate.resource())
    }
}
