use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::{Key, Version};

/// Detects a server that does not accept versions in the form in which it receives them. Some S3 servers match ETags
/// only without quotes, some only with quotes. To every other replace they answer that the object has changed.
///
/// The check at connect cannot detect this, since all its writes must be refused. The sign is a refused replace of a
/// version that a read, sent after the refusal, still shows. A server that keeps its promises never does this: a
/// version that was replaced does not return.
#[derive(Debug, Default)]
pub(super) struct VersionForm(Mutex<FormState>);

#[derive(Debug, Default)]
struct FormState {
    /// True once a replace was applied: the form is right.
    is_right: bool,
    /// The latest refused replace.
    refused: Option<(Key, Version)>,
    /// Number of consecutive refusals although nothing had changed.
    wrong_refusals: u32,
}

/// A read in progress, and the version whose replace was refused before it began.
#[derive(Debug)]
pub(super) struct ReadBegun(Option<Version>);

impl VersionForm {
    /// Records that a replace was applied.
    pub(super) fn applied(&self) {
        *self.state() = FormState { is_right: true, ..FormState::default() };
    }

    /// Records that a replace of this version was refused, because the object has another one.
    pub(super) fn refused(&self, key: &Key, version: &Version) {
        let mut state = self.state();
        if !state.is_right {
            state.refused = Some((key.clone(), version.clone()));
        }
    }

    /// Records that a read of this key begins.
    pub(super) fn begin(&self, key: &Key) -> ReadBegun {
        ReadBegun(
            self.state().refused.as_ref().filter(|(of, _)| of == key).map(|(_, version)| version.clone()),
        )
    }

    /// True if the form is wrong, now that this read has shown this version.
    pub(super) fn is_wrong(&self, begun: ReadBegun, shown: &Version) -> bool {
        let ReadBegun(Some(refused)) = begun else { return false };
        let mut state = self.state();
        if state.is_right {
            return false;
        }
        // Counts each refusal once.
        if state.refused.take_if(|(_, version)| *version == refused).is_some() {
            state.wrong_refusals = if refused == *shown { state.wrong_refusals + 1 } else { 0 };
        }
        state.wrong_refusals >= WRONG_REFUSALS
    }

    fn state(&self) -> MutexGuard<'_, FormState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A single case could be an operator who restored the object at that moment.
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

    /// A refused replace, followed by a read.
    fn again(form: &VersionForm, replaced: &str, shown: &str) -> bool {
        form.refused(&key(), &version(replaced));
        form.is_wrong(form.begin(&key()), &version(shown))
    }

    #[test]
    fn three_refusals_of_what_is_there_in_a_row_mean_that_the_form_is_wrong() {
        let form = VersionForm::default();
        assert!(!again(&form, "a", "a") && !again(&form, "a", "a"));
        assert!(!again(&form, "a", "b"), "that one had changed");
        assert!(!again(&form, "b", "b") && !again(&form, "b", "b"));
        assert!(again(&form, "b", "b"));
    }

    #[test]
    fn one_refusal_counts_once_however_often_it_is_read() {
        let form = VersionForm::default();
        form.refused(&key(), &version("a"));
        for _ in 0..10 {
            assert!(!form.is_wrong(form.begin(&key()), &version("a")));
        }
    }

    #[test]
    fn a_read_that_was_sent_before_the_refusal_or_of_another_key_says_nothing() {
        let form = VersionForm::default();
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
        let form = VersionForm::default();
        form.applied();
        assert!((0..10).all(|_| !again(&form, "a", "a")));
    }
}
