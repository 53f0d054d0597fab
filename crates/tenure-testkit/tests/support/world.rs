//! A recording server, a proxy in front of it, and checks of the proxy's rules.

use std::io::ErrorKind;
use std::time::Duration;

use tenure_testkit::{Fault, FaultyProxy, InstalledRule, Rule};

use super::client::Client;
use super::recorder::Recorder;

/// A recording server, and a proxy in front of it.
pub(crate) struct World {
    pub(crate) recorder: Recorder,
    pub(crate) proxy: FaultyProxy,
}

impl World {
    pub(crate) fn new() -> Self {
        let recorder = Recorder::start();
        let proxy = FaultyProxy::start(recorder.address());
        Self { recorder, proxy }
    }

    pub(crate) fn with(fault: Fault) -> (Self, InstalledRule) {
        let world = Self::new();
        let rule = world.proxy.install(Rule::new(fault).times(1));
        (world, rule)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.proxy.address())
    }

    /// The error of a put that gets no answer.
    pub(crate) fn put_fails(&self) -> ErrorKind {
        self.client().put("/key", "one").unwrap_err().kind()
    }

    /// The requests that reached the server, once none is pending.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.proxy.settle(LONG);
        self.recorder.requests()
    }
}

#[track_caller]
pub(crate) fn assert_counts(rule: &InstalledRule, installed: u64, applied: u64, skipped: u64) {
    let counts = rule.counts();
    assert_eq!((counts.installed, counts.applied, counts.skipped), (installed, applied, skipped));
}

/// Long enough for other requests to happen within it, on a busy machine.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

/// Longer than any step takes.
pub(crate) const LONG: Duration = Duration::from_secs(30);
