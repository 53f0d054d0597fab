use std::time::Duration;

use super::GroupSize;
use crate::Timing;
use crate::machine::Patience;

/// Parameters of one contender for a slot of a group.
#[derive(Clone, Debug)]
pub struct SlotParams {
    /// The size that the contender expects of the group.
    pub size: GroupSize,
    /// The durations of its own leases.
    pub timing: Timing,
    /// Longest wait.
    pub patience: Patience,
    /// Minimum time between two reads of a slot after hints: none where a read costs almost nothing.
    pub hint_pause: Duration,
    /// True if a listing of the group shows stamps, and the store gives no hints.
    pub stamps: bool,
}
