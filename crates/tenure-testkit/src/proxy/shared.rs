//! State that the connections, the test and the rules share.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::request::ProxiedRequest;
use super::{Counts, Exchange, Fault, Rule};

/// Rules and log of one proxy.
#[derive(Debug)]
pub(crate) struct ProxyShared {
    began: Instant,
    state: Mutex<ProxyState>,
    settled: Condvar,
}

#[derive(Debug, Default)]
struct ProxyState {
    rules: Vec<RuleInForce>,
    log: Vec<Exchange>,
    /// Number of exchanges that were removed from the front of the log.
    forgotten: usize,
    under_way: usize,
}

#[derive(Debug)]
struct RuleInForce {
    rule: Rule,
    removed: bool,
    counts: Counts,
}

/// A pending exchange. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    shared: Arc<ProxyShared>,
    number: usize,
    due: Option<DueFault>,
    happened: bool,
    applied: bool,
}

/// The fault that is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueFault {
    pub(crate) fault: Fault,
    pub(crate) orderly: bool,
    rule: usize,
}

impl ProxyShared {
    pub(crate) fn new() -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { began: Instant::now(), state, settled: Condvar::new() })
    }

    pub(crate) fn install(&self, rule: Rule) -> usize {
        let mut state = self.state();
        state.rules.push(RuleInForce { rule, removed: false, counts: Counts::default() });
        state.rules.len() - 1
    }

    pub(crate) fn remove(&self, rule: usize) {
        self.state().rules[rule].removed = true;
    }

    pub(crate) fn counts(&self, rule: usize) -> Counts {
        self.state().rules[rule].counts
    }

    pub(crate) fn all_counts(&self) -> Vec<(Fault, Counts)> {
        self.state().rules.iter().map(|installed| (installed.rule.fault, installed.counts)).collect()
    }

    pub(crate) fn log(&self) -> Vec<Exchange> {
        self.state().log.clone()
    }

    pub(crate) fn clear_log(&self) {
        let mut state = self.state();
        state.forgotten += state.log.len();
        state.log.clear();
    }

    /// Waits until no exchange is pending; `false` if that takes longer than `patience`.
    pub(crate) fn settle(&self, patience: Duration) -> bool {
        let waited = self.settled.wait_timeout_while(self.state(), patience, |state| state.under_way > 0);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Logs a request that has arrived, and chooses its fault.
    pub(crate) fn arrived(self: &Arc<Self>, request: &dyn ProxiedRequest, connection: u64) -> UnderWay {
        let mut state = self.state();
        let mut due = None;
        for (number, installed) in state.rules.iter_mut().enumerate() {
            if installed.removed || !installed.rule.wants(request) {
                continue;
            }
            if due.is_some() {
                installed.counts.skipped += 1;
                continue;
            }
            installed.rule.fires();
            due =
                Some(DueFault { fault: installed.rule.fault, orderly: installed.rule.orderly, rule: number });
        }
        let header = |name| request.header(name).map(str::to_owned);
        state.log.push(Exchange {
            at: self.began.elapsed(),
            connection,
            method: request.method().to_owned(),
            target: request.target().to_owned(),
            if_match: header("if-match"),
            if_none_match: header("if-none-match"),
            if_generation_match: header("x-goog-if-generation-match"),
            fault: due.map(|due| due.fault),
            served: Vec::new(),
            answered: None,
        });
        state.under_way += 1;
        let number = state.forgotten + state.log.len() - 1;
        UnderWay { shared: Arc::clone(self), number, due, happened: false, applied: false }
    }

    fn state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    pub(crate) fn due(&self) -> Option<DueFault> {
        self.due
    }

    /// The server has answered with this status.
    pub(crate) fn served(&mut self, status: u16) {
        self.applied |= (200..300).contains(&status);
        self.note(|exchange| exchange.served.push(status));
    }

    /// The proxy sends this status to the client.
    pub(crate) fn answered(&self, status: u16) {
        self.note(|exchange| exchange.answered = Some(status));
    }

    /// The fault that was due has happened.
    pub(crate) fn happened(&mut self) {
        self.happened = true;
    }

    fn note(&self, what: impl FnOnce(&mut Exchange)) {
        let mut state = self.shared.state();
        let forgotten = state.forgotten;
        if let Some(exchange) = self.number.checked_sub(forgotten).and_then(|at| state.log.get_mut(at)) {
            what(exchange);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(due) = self.due {
            let counts = &mut state.rules[due.rule].counts;
            if self.happened {
                counts.installed += 1;
                counts.applied += u64::from(self.applied);
            } else {
                counts.skipped += 1;
            }
        }
        state.under_way -= 1;
        drop(state);
        self.shared.settled.notify_all();
    }
}
