use std::num::NonZero;
use std::sync::Arc;

use tenure_core::{Holder, ProcessInfo};
use tenure_store::{Store, StoreError};

use super::{Coordinator, block_on};
use crate::clock::Clock;
use crate::{Error, Logbook, Recorder, Verdicts};

/// Connects a blocking coordinator with options.
#[derive(Debug, Default)]
#[must_use = "a builder connects nothing until connect() is called"]
pub struct CoordinatorBuilder(crate::CoordinatorBuilder);

impl CoordinatorBuilder {
    same! { choices of CoordinatorBuilder:
        clock(clock: Arc<dyn Clock>);
        holder(holder: Holder);
        process(process: ProcessInfo);
        recorder(recorder: Arc<dyn Recorder>);
        logbook(logbook: Logbook);
        verdicts(verdicts: Verdicts);
        check_again();
        calls_max(calls_max: NonZero<usize>);
    }

    /// Connects to an existing store.
    #[track_caller]
    pub fn connect(self, store: impl Store) -> Result<Coordinator, Error> {
        block_on(self.0.connect(store)).map(Coordinator)
    }

    /// Connects to a store that is created on the keeper's runtime, where its connections live.
    #[track_caller]
    pub fn connect_with<S, F>(self, make: impl FnOnce() -> F + Send + 'static) -> Result<Coordinator, Error>
    where
        S: Store,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        block_on(self.0.connect_with(make)).map(Coordinator)
    }

    /// Connects without testing the store live. Tenure still requires its declared guarantees, and trusts them.
    #[track_caller]
    pub fn connect_dangerously_unchecked(self, store: impl Store) -> Result<Coordinator, Error> {
        block_on(self.0.connect_dangerously_unchecked(store)).map(Coordinator)
    }
}
