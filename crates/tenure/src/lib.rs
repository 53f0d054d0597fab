#![doc = include_str!("docs/crate.md")]
#![doc = "```rust"]
#![doc = include_str!("docs/shelf.rs")]
#![doc = "# fn main() {}"]
#![doc = "```"]
#![doc = ""]
#![doc = include_str!("docs/after_shelf.md")]

pub mod blocking;
pub mod clock;
mod coordinator;
pub mod election;
pub mod fence;
mod host;
mod keeper;
mod keys;
mod lease;
mod observe;
pub mod record;
mod set;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
mod slots;
pub mod store;
mod trust;

pub use coordinator::{Coordinator, CoordinatorBuilder, Forgotten, WhyKept};
pub use election::{Campaign, Election, Leader, Leaders, Ran, Term};
pub use host::{Logbook, Survivor, Survivors, Verdicts, WitnessPart, process_holder, this_process};
pub use keeper::{
    AttemptOutcome, AttemptReport, Event, EventReport, LeaseState, Operation, Recorder, Renewal,
};
pub use keys::{Creation, KeyEntries, KeyEntry, Keys, Replacement, Revision};
pub use lease::{Handle, Lease, Request, WorkGuard};
pub use observe::{Change, ChangeKind, Observation, Observations, Watch, WatchEvent};
pub use set::{LeaseSet, SetLoss, SetRequest};
pub use slots::{GroupFull, HeldSlot, Slot, SlotGroup, Slots};
#[doc(inline)]
pub use tenure_core::machine::{
    Denied, Doubt, Fault, HeldBy, Left, Lost, Purpose, Remaining, Sighting, Standing,
};
#[doc(inline)]
pub use tenure_core::{
    Drift, Error, ErrorKind, Holder, HolderError, ProcessInfo, Timing, TimingBuilder, Token, TokenError,
};
#[doc(inline)]
pub use tenure_store::{Key, KeyError, Prefix, Reason};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/slots.md")]
struct SlotsPage;

#[cfg(all(doctest, feature = "tower"))]
#[doc = include_str!("../../../docs/concepts/fencing-http.md")]
struct FencingHttpPage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/fencing.md")]
struct FencingPage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/set.md")]
struct SetPage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/fenced-values.md")]
struct FencedValuesPage;
