/// How far a probe has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How many steps are done.
    pub done: usize,
    /// How many there are.
    pub of: usize,
    /// What it is about, in a word or two.
    pub title: &'static str,
    /// The step that begins, as a sentence.
    pub step: &'static str,
}
