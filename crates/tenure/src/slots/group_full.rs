use std::fmt;

use tenure_store::Key;

use super::HeldSlot;
use crate::{Error, ErrorKind};

/// Every slot of a group is held: the source of an error of kind [`Held`](ErrorKind::Held).
///
/// ```
/// use tenure::store::Memory;
/// use tenure::{Coordinator, GroupFull};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tenure::Error> {
/// let coordinator = Coordinator::connect(Memory::new()).await?;
/// let slot = coordinator.slots("gpu", 1)?.try_acquire().await?;
///
/// let error = coordinator.slots("gpu", 1)?.try_acquire().await.unwrap_err();
/// let full = GroupFull::of(&error).expect("the group is full");
/// assert_eq!(full.holders[0].record.token, slot.token());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupFull {
    /// The group.
    pub group: Key,
    /// Its number of slots.
    pub slots: u16,
    /// The holders, by index. A slot that has run out while its work still runs is in it, with no time remaining, if the
    /// contender [heeds the tree](crate::Slots::heed_tree). A slot without a holder that cannot be granted is not.
    pub holders: Vec<HeldSlot>,
}

impl GroupFull {
    /// The reason of this error, if it is a full group.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }

    pub(super) fn into_error(self, store: &str) -> Error {
        let (group, slots) = (&self.group, self.slots);
        let sentence = match slots {
            1 => format!("the slot of {group} on {store} is held: {self}. Wait, or do something else"),
            _ => format!(
                "all {slots} slots of {group} on {store} are held: {self}. Wait, or do something else"
            ),
        };
        Error::new(ErrorKind::Held, sentence).because(self)
    }
}

impl fmt::Display for GroupFull {
    /// The holders, as in `slot 0 by host-a (token 7), slot 1 by host-b (token 9)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, held) in self.holders.iter().take(NAMED_MAX).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}slot {} by {} (token {})", held.index, held.holder(), held.record.token)?;
        }
        match self.holders.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

impl std::error::Error for GroupFull {}

/// Maximum number of holders that a message names.
const NAMED_MAX: usize = 8;
