/// Fault of the next write on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The write is carried out, and its answer is lost.
    LosesAnswer,
    /// The write never arrives.
    LosesRequest,
}
