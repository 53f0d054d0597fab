/// A bias of a seed of the driver towards one kind of situation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DriverFocus {
    /// No bias: the full mixture.
    #[default]
    None,
    /// Users drop futures, single messages are lost, and there are no other faults: every duty has its bound.
    Calm,
    /// Single messages are lost, and there are no other faults: no lease is lost.
    Whole,
    /// One machine with witnesses, whose holders are killed.
    Witnesses,
    /// A store that accepts one write of a key per second.
    Paced,
    /// A store whose hints are mostly lost.
    Hints,
    /// More keys than a keeper remembers.
    Keys,
    /// Foreign code that panics often, and no other faults.
    Panics,
    /// Coordinators that are shut down often.
    Shutdowns,
    /// A store that ignores conditions.
    Liars,
    /// Credentials that are rotated, and no other faults.
    Credentials,
    /// Many renewals and reads for one place, and no faults.
    Crowded,
    /// A process with a thousand leases, and a store that is down for a third of their ttl.
    Outage,
    /// Logbooks with many pages that were cut short, or written on another clock, besides all other faults.
    Pages,
    /// Users of slots, sets and plain keys. Single messages are lost, and there are no other faults.
    Primitives,
}

impl DriverFocus {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::None,
        Self::Calm,
        Self::Whole,
        Self::Witnesses,
        Self::Paced,
        Self::Hints,
        Self::Keys,
        Self::Panics,
        Self::Shutdowns,
        Self::Liars,
        Self::Credentials,
        Self::Crowded,
        Self::Outage,
        Self::Pages,
        Self::Primitives,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Calm => "calm",
            Self::Whole => "whole",
            Self::Witnesses => "witnesses",
            Self::Paced => "paced",
            Self::Hints => "hints",
            Self::Keys => "keys",
            Self::Panics => "panics",
            Self::Shutdowns => "shutdowns",
            Self::Liars => "liars",
            Self::Credentials => "credentials",
            Self::Crowded => "crowded",
            Self::Outage => "outage",
            Self::Pages => "pages",
            Self::Primitives => "primitives",
        }
    }

    /// The focus with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|focus| focus.name() == name)
    }

    /// True if no process, machine, connection or store fails, except as the focus itself demands: an outage, or
    /// rotated credentials. Single messages may be lost, and foreign code may panic.
    pub(super) fn is_calm(self) -> bool {
        !matches!(self, Self::None | Self::Witnesses | Self::Liars | Self::Pages)
    }
}
