//! `tenure acquire`, `renew`, `release` and `steal`: leases for scripts, which have no long-lived process.

mod acquire;
mod file;
mod release;
mod renew;
mod source;
mod steal;

pub(crate) use acquire::acquire;
pub(crate) use release::release;
pub(crate) use renew::renew;
pub(crate) use steal::steal;

use serde::Serialize;
use tenure::Handle;
use tenure::clock::BootClock;

use crate::duration;
use crate::exit::{self, Failure};

/// A handle as JSON. The fields and their names are a contract: `docs/reference/command/acquire.md`.
#[derive(Debug, Serialize)]
struct HandleAnswer<'a> {
    store: &'a str,
    name: &'a str,
    holder: &'a str,
    token: u64,
    ttl_ms: u64,
    /// Time until the deadline; absent once it is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ms: Option<u64>,
    /// Absent if it is in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
}

impl<'a> HandleAnswer<'a> {
    fn of(handle: &'a Handle) -> Self {
        Self {
            store: handle.store(),
            name: handle.key().as_str(),
            holder: handle.holder().id(),
            token: handle.token().get(),
            ttl_ms: handle.ttl().as_millis(),
            left_ms: None,
            handle: None,
        }
    }

    fn with_time_left(mut self, handle: &Handle) -> Self {
        // Rounded down, so that a script that relies on it stops in time.
        self.left_ms = u64::try_from(handle.remaining(&BootClock::new()).as_millis()).ok();
        self
    }

    fn with_handle(mut self, handle: &Handle) -> Self {
        self.handle = Some(handle.reveal());
        self
    }
}

/// Checks the deadline after the handle was written: a disk or a reader may have taken longer than the ttl.
fn check_deadline(handle: &Handle) -> Result<(), Failure> {
    if !handle.remaining(&BootClock::new()).is_zero() {
        return Ok(());
    }
    let sentence = format!(
        "{} ran out before its handle was printed, stop acting: acquire it again, with a longer ttl",
        lease_words(handle)
    );
    Err(Failure::new(exit::LOST, sentence))
}

/// The lease, for an error.
fn lease_words(handle: &Handle) -> String {
    let (key, holder, token, store) = (handle.key(), handle.holder(), handle.token(), handle.store());
    format!("lease {key} of {holder} (token {token}) on {store}")
}

/// The time at which it runs out without a renewal, for an error.
fn time_left_words(handle: &Handle) -> String {
    duration::at_most(handle.remaining(&BootClock::new()))
}
