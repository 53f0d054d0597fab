#![doc = include_str!("docs/crate.md")]

mod checksum;
pub mod clock;
mod disk;
mod drive;
mod inotify;
mod lease;
mod logbook;
mod owner;
mod process_holder;
pub mod record;
pub mod store;
mod verdicts;
mod witness;
mod workers;

pub use drive::{
    AttemptOutcome, AttemptReport, Builder, Change, ChangeKind, Coordinator, EventReport, Forgotten,
    Observation, Observations, Operation, Recorder, Watch, WatchEvent, WhyKept,
};
pub use lease::{Acting, Handle, Lease, LeaseState, Renewal, Request};
pub use logbook::Logbook;
pub use process_holder::process_holder;
#[doc(inline)]
pub use tenure_core::machine::{Denied, Event, Left, Lost, Purpose, Remaining, Sighting, Standing};
#[doc(inline)]
pub use tenure_core::{Drift, Error, Holder, HolderError, Kind, Timing, TimingBuilder, Token};
#[doc(inline)]
pub use tenure_store::{Key, KeyError, Prefix};
pub use verdicts::Verdicts;
pub use witness::{Survivor, Survivors, WitnessPart};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
