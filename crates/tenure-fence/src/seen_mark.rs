use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::Token;

use crate::{FenceError, FencingToken};

/// The greatest mark of a resource that this process has seen, for fences whose resource can lose data.
///
/// The resource shows at least as much in every later answer, unless it was restored from a backup or changed by another
/// program. Then every write is refused with [`FenceError::WentBack`] until an operator acknowledges it.
#[derive(Debug, Default)]
pub struct SeenMark(Mutex<Option<FencingToken>>);

impl SeenMark {
    /// The least token that the mark must show to a write that is sent now. Fails if the mark was of another lease.
    pub fn least(&self, resource: &str, offered: &FencingToken) -> Result<Token, FenceError> {
        let Some(seen) = &*self.lock() else { return Ok(Token::ZERO) };
        if seen.name() != offered.name() {
            offered.check(resource, Some(seen))?;
        }
        Ok(seen.token())
    }

    /// Notes that the resource has shown this mark.
    pub fn note(&self, mark: &FencingToken) {
        let mut seen = self.lock();
        let is_greater = seen.as_ref().is_none_or(|seen| seen.token() < mark.token());
        if is_greater {
            *seen = Some(mark.clone());
        }
    }

    /// Accepts that the resource shows this token, although it has shown a greater one. Zero: it shows none, and any lease may
    /// use it.
    pub fn acknowledge(&self, shown: Token) {
        let mut seen = self.lock();
        *seen =
            seen.take().and_then(|seen| FencingToken::new(seen.name().clone(), shown.min(seen.token())).ok());
    }

    fn lock(&self) -> MutexGuard<'_, Option<FencingToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> FencingToken {
        text.parse().unwrap()
    }

    #[test]
    fn the_greatest_mark_is_remembered_until_a_smaller_one_is_acknowledged() {
        let seen = SeenMark::default();
        let least = |offered: &str| seen.least("r", &token(offered)).map(Token::get);
        assert_eq!(least("billing=1").unwrap(), 0);
        seen.note(&token("billing=7"));
        seen.note(&token("billing=5"));
        assert_eq!(least("billing=1").unwrap(), 7);
        assert!(matches!(least("payroll=9"), Err(FenceError::OtherLease { .. })));
        seen.acknowledge(Token::new(5).unwrap());
        assert_eq!(least("billing=1").unwrap(), 5);
        seen.acknowledge(Token::MAX);
        assert_eq!(least("billing=1").unwrap(), 5, "an acknowledgement does not raise it");
        seen.acknowledge(Token::ZERO);
        assert_eq!(least("payroll=9").unwrap(), 0);
    }
}
