/// Progress of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Number of completed steps.
    pub done: usize,
    /// Total number of steps.
    pub of: usize,
    /// Topic of the step, in a word or two.
    pub title: &'static str,
    /// The step that begins, as a sentence.
    pub step: &'static str,
}
