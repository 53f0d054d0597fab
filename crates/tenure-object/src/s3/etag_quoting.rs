use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::{Key, Version};

/// Whether the server takes ETags back in the form in which it is given them: some match them only without their quotes, some
/// only with them, and answer to every other replace that the object has changed.
///
/// The check at connect cannot see that, since all its writes must be refused. The sign is a replace that was refused, of a
/// version that a read shows which was sent after that. A server that keeps its promises never does so: once a version
/// is gone, it does not come back.
#[derive(Debug, Default)]
pub(super) struct EtagQuoting(Mutex<QuotingState>);

#[derive(Debug, Default)]
struct QuotingState {
    /// A replace was applied: the form is right.
    is_right: bool,
    /// The latest replace that was refused.
    refused: Option<(Key, Version)>,
    /// How many were refused in a row although nothing had changed.
    wrong_refusals: u32,
}

/// A read that was begun, and what was refused of its key before that.
#[derive(Debug)]
pub(super) struct ReadBegun(Option<Version>);

impl EtagQuoting {
    /// A replace was applied.
    pub(super) fn applied(&self) {
        *self.state() = QuotingState { is_right: true, ..QuotingState::default() };
    }

    /// A replace of this version was refused, because the object has another one.
    pub(super) fn refused(&self, key: &Key, version: &Version) {
        let mut state = self.state();
        if !state.is_right {
            state.refused = Some((key.clone(), version.clone()));
        }
    }

    /// A read of this key begins.
    pub(super) fn begin(&self, key: &Key) -> ReadBegun {
        ReadBegun(
            self.state().refused.as_ref().filter(|(of, _)| of == key).map(|(_, version)| version.clone()),
        )
    }

    /// Whether the form is wrong, now that this read has shown this version.
    pub(super) fn is_wrong(&self, begun: ReadBegun, shown: &Version) -> bool {
        let ReadBegun(Some(refused)) = begun else { return false };
        let mut state = self.state();
        if state.is_right {
            return false;
        }
        // Once for each that was refused.
        if state.refused.take_if(|(_, version)| *version == refused).is_some() {
            state.wrong_refusals = if refused == *shown { state.wrong_refusals + 1 } else { 0 };
        }
        state.wrong_refusals >= WRONG_REFUSALS
    }

    fn state(&self) -> MutexGuard<'_, QuotingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Once could be somebody who restored the object at that very moment.
const WRONG_REFUSALS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::parse("k").unwrap()
    }

    fn version(text: &str) -> Version {
        Version::new(text)
    }

    /// A replace that is refused, and a read after it.
    fn again(form: &EtagQuoting, replaced: &str, shown: &str) -> bool {
        form.refused(&key(), &version(replaced));
        form.is_wrong(form.begin(&key()), &version(shown))
    }

    #[test]
    fn three_refusals_of_what_is_there_in_a_row_mean_that_the_form_is_wrong() {
        let form = EtagQuoting::default();
        assert!(!again(&form, "a", "a") && !again(&form, "a", "a"));
        assert!(!again(&form, "a", "b"), "that one had changed");
        assert!(!again(&form, "b", "b") && !again(&form, "b", "b"));
        assert!(again(&form, "b", "b"));
    }

    #[test]
    fn one_refusal_counts_once_however_often_it_is_read() {
        let form = EtagQuoting::default();
        form.refused(&key(), &version("a"));
        for _ in 0..10 {
            assert!(!form.is_wrong(form.begin(&key()), &version("a")));
        }
    }

    #[test]
    fn a_read_that_was_sent_before_the_refusal_or_of_another_key_says_nothing() {
        let form = EtagQuoting::default();
        for number in 0..10 {
            let (early, other) = (form.begin(&key()), Key::parse("other").unwrap());
            let latest = version(&number.to_string());
            form.refused(&key(), &latest);
            assert!(!form.is_wrong(early, &latest));
            assert!(!form.is_wrong(form.begin(&other), &latest));
        }
    }

    #[test]
    fn once_a_replace_was_applied_the_form_is_right() {
        let form = EtagQuoting::default();
        form.applied();
        assert!((0..10).all(|_| !again(&form, "a", "a")));
    }
}
