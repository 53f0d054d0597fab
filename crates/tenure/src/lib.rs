#![doc = include_str!("docs/crate.md")]

mod checksum;
pub mod clock;
mod disk;
mod drive;
mod error;
mod inotify;
mod lease;
mod logbook;
pub mod machine;
mod owner;
pub mod record;
pub mod store;
mod verdicts;
pub mod verify;
mod witness;
mod workers;

pub use drive::{
    AttemptOutcome, AttemptReport, Builder, Change, ChangeKind, Coordinator, EventReport, Forgotten,
    Observation, Observations, Operation, Recorder, Watch, WatchEvent, WhyKept,
};
pub use error::{Error, Kind};
pub use lease::{Acting, Belief, Handle, Lease, LeaseState, Renewal, Request};
pub use logbook::Logbook;
pub use machine::{Drift, Lost, Remaining, Standing, Timing, TimingBuilder};
pub use record::{Holder, Token};
pub use tenure_store::{Key, KeyError, Prefix};
pub use verdicts::Verdicts;
pub use witness::{Survivor, Survivors, WitnessPart};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
