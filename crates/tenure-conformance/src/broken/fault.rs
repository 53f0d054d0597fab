/// What happens to the next write on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is carried out, and its answer is lost.
    LosesAnswer,
    /// It never arrives.
    LosesRequest,
}
