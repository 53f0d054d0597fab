use super::Leader;
use crate::clock::Instant;

/// The latest knowledge about the leader, with its age.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaderView {
    /// The leader; `None` if there is none, or none was seen yet.
    pub(super) leader: Option<Leader>,
    /// Time of sending of the latest successful read; `None` before the first.
    pub(super) as_of: Option<Instant>,
}
