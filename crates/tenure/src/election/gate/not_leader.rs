use std::fmt;
use std::time::Duration;

use tenure_store::Key;

use crate::Leader;

/// This node does not lead: the answer of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotLeader {
    /// The name of the election.
    pub election: Key,
    /// The leader; `None` if there is none, or if none is known that was seen recently.
    pub leader: Option<Leader>,
    /// Age of this knowledge; `None` if the election could not be read yet.
    pub age: Option<Duration>,
}

impl NotLeader {
    /// The address of the leader, if it is known and announced one.
    pub fn address(&self) -> Option<&str> {
        self.leader.as_ref()?.address()
    }
}

impl fmt::Display for NotLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.election;
        let Some(leader) = &self.leader else {
            return write!(f, "not the leader of {name}, and no leader is known: try again later");
        };
        match leader.address() {
            Some(address) => write!(f, "not the leader of {name}, it is at {address}"),
            None => {
                write!(f, "not the leader of {name}, it is {}, which announced no address", leader.name())
            }
        }
    }
}

impl std::error::Error for NotLeader {}
