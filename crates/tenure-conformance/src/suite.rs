use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use tenure::clock::{BootClock, Clock as _};
use tenure_store::{Key, Store};

use crate::check::{Check, Clause};
use crate::stop::Stop;
use crate::trial::{Sizes, Trial};
use crate::{CheckOutcome, Finding, Harness, Report, Step, contract, lease, primitive};

/// The suite, ready to run: first the contract, then leases on top of it, then the primitives on top of both.
#[derive(Clone, Debug)]
#[must_use = "a suite does nothing until it is run"]
pub struct Suite {
    run: u128,
    sizes: Sizes,
    connections: usize,
    only: Vec<String>,
    versions_name_run: bool,
}

impl Suite {
    /// A suite that writes only under keys named after `run`.
    ///
    /// The number must not have been used on this store before: the suite deletes nothing, and the checks begin with
    /// keys that do not exist. On a temporary store any number is fine.
    pub fn new(run: u128) -> Self {
        Self { run, sizes: Sizes::default(), connections: 4, only: Vec::new(), versions_name_run: false }
    }

    /// Sets the number of racers that write the same key at the same time. Default: 64.
    pub fn racers(mut self, racers: usize) -> Self {
        self.sizes.racers = racers.max(2);
        self
    }

    /// Sets the number of rounds of each kind of race. Default: 100. A server that is almost atomic fails only one
    /// round in many.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.sizes.rounds = rounds.max(1);
        self
    }

    /// Sets the number of keys in the long listing. Default: 1100. Object stores list in pages of a thousand.
    pub fn listed(mut self, listed: usize) -> Self {
        self.sizes.listed = listed.max(2);
        self
    }

    /// Sets the number of contenders for the same lease. Default: 8.
    pub fn contenders(mut self, contenders: usize) -> Self {
        self.sizes.contenders = contenders.max(2);
        self
    }

    /// Sets the number of times that each contender is granted the lease. Default: 3.
    pub fn turns(mut self, turns: usize) -> Self {
        self.sizes.turns = turns.max(1);
        self
    }

    /// Sets the ttl of the leases. Default: one second, or longer if the store needs it to tolerate the renewals.
    ///
    /// The checks of leases take about ten ttls on a real clock. If calls are slow, or the machine is very busy, a
    /// longer ttl keeps healthy holders from losing their lease to a short delay.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.sizes.ttl = ttl;
        self
    }

    /// Sets the number of connections that racers and contenders share. Default: 4, minimum: 2.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(2);
        self
    }

    /// Runs only the checks of this clause; may be called several times.
    pub fn only(mut self, clause: impl Into<String>) -> Self {
        self.only.push(clause.into());
        self
    }

    /// Runs only the checks of the contract, as if each of its clauses was given to [`only`](Self::only).
    pub fn only_contract(mut self) -> Self {
        self.only.extend(contract::CLAUSES.iter().map(|clause| clause.name.into()));
        self
    }

    /// Runs only the checks of leases, as if each of their clauses was given to [`only`](Self::only).
    pub fn only_leases(mut self) -> Self {
        self.only.extend(lease::CLAUSES.iter().chain(lease::WHOLE_STORE).map(|clause| clause.name.into()));
        self
    }

    /// Runs only the checks of the primitives, as if each of their clauses was given to [`only`](Self::only).
    pub fn only_primitives(mut self) -> Self {
        let clauses = primitive::CLAUSES.iter().chain(primitive::WHOLE_STORE);
        self.only.extend(clauses.map(|clause| clause.name.into()));
        self
    }

    /// The names of all clauses, in order.
    pub fn clauses() -> Vec<&'static str> {
        all_clauses().map(|clause| clause.name).collect()
    }

    /// Sets the length of the longest keys in bytes. Default: [`Key::MAX_BYTES`]. For a harness that makes keys longer
    /// before the store sees them.
    pub fn longest_key(mut self, bytes: usize) -> Self {
        self.sizes.longest_key = bytes.clamp(SHORTEST_LONG_KEY, Key::MAX_BYTES);
        self
    }

    /// The versions of this store name the run of its server, so an entry has another one after a restart. The suite then
    /// checks that no version from before the restart conditions a write.
    pub fn versions_name_the_run(mut self) -> Self {
        self.versions_name_run = true;
        self
    }

    /// Number of checks that [`run`](Self::run) makes.
    pub fn checks(&self) -> usize {
        all_clauses().filter(|clause| self.includes(clause)).map(|clause| clause.checks.len()).sum()
    }

    /// Runs every check. The checks of the contract, and those that act on the complete store, run one after another.
    /// The other checks of leases and primitives run at the same time if they use the machine's own clock. The report is in the order
    /// of the checks.
    pub async fn run(&self, harness: &dyn Harness) -> Report {
        self.run_telling(harness, &|_| ControlFlow::Continue(())).await
    }

    /// Like [`run`](Self::run), and reports each [`Step`] to `tell`, to show progress. If `tell` breaks, the run ends
    /// before the next check, with a report of the completed ones.
    pub async fn run_telling(
        &self,
        harness: &dyn Harness,
        tell: &(dyn Fn(Step<'_>) -> ControlFlow<()> + Sync),
    ) -> Report {
        // A check moves a test's clock by its pauses. Several checks at once would move it too fast for their keepers.
        let machine = BootClock::new().domain();
        let on_the_machines_clock = machine.is_some() && harness.clock().domain() == machine;
        let at_once = |checks| if on_the_machines_clock { checks } else { 1 };
        let mut report = Report { store: harness.name(), findings: Vec::new() };
        for (level, at_once) in [
            (contract::CLAUSES, 1),
            (lease::CLAUSES, at_once(LEASE_CHECKS_AT_ONCE)),
            (lease::WHOLE_STORE, 1),
            (primitive::CLAUSES, at_once(PRIMITIVE_CHECKS_AT_ONCE)),
            (primitive::WHOLE_STORE, 1),
        ] {
            let wanted: Vec<_> = level.iter().filter(|clause| self.includes(clause)).collect();
            if wanted.is_empty() {
                continue;
            }
            // New connections for each level: the contract ends with a restart, which connections need not survive.
            let connections = self.connect(harness).await;
            let checks =
                wanted.iter().flat_map(|clause| clause.checks.iter().map(|check| (clause.name, check)));
            let make = |((clause, check), number): ((_, &'static Check), usize)| {
                let (scope, connections) = (format!("conformance-{:x}/{number}", self.run), &connections);
                let making = async move {
                    let begun = tell(Step::Begun { clause, check: check.name });
                    if begun.is_break() {
                        return None;
                    }
                    Some(self.run_check(harness, connections, scope, clause, check).await)
                };
                making.boxed()
            };
            let making: Vec<_> = checks.zip(report.findings.len()..).map(make).collect();
            let mut made = stream::iter(making).buffered(at_once);
            while let Some(finding) = made.next().await {
                let Some(finding) = finding else { return report };
                let ended = tell(Step::Ended(&finding));
                report.findings.push(finding);
                if ended.is_break() {
                    return report;
                }
            }
        }
        report
    }

    async fn connect(&self, harness: &dyn Harness) -> Vec<Arc<dyn Store>> {
        let mut connections = Vec::with_capacity(self.connections);
        for _ in 0..self.connections {
            connections.push(harness.open().await);
        }
        connections
    }

    fn includes(&self, clause: &Clause) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == clause.name)
    }

    async fn run_check(
        &self,
        harness: &dyn Harness,
        connections: &[Arc<dyn Store>],
        scope: String,
        clause: &'static str,
        check: &Check,
    ) -> Finding {
        let mut trial = Trial::new(harness, connections, self.sizes, scope);
        trial.versions_name_run = self.versions_name_run;
        let verdict = match (check.run)(&trial).await {
            Ok(()) => CheckOutcome::Passed,
            Err(Stop::Failed(why)) => CheckOutcome::Failed(why),
            Err(Stop::Skipped(why)) => CheckOutcome::Skipped(why),
        };
        Finding { clause, check: check.name, verdict, note: trial.into_note() }
    }
}

fn all_clauses() -> impl Iterator<Item = &'static Clause> {
    let levels =
        [contract::CLAUSES, lease::CLAUSES, lease::WHOLE_STORE, primitive::CLAUSES, primitive::WHOLE_STORE];
    levels.into_iter().flatten()
}

/// All lease checks: each mostly waits, on separate keys.
const LEASE_CHECKS_AT_ONCE: usize = 32;

/// Fewer, because their races load a server.
const PRIMITIVE_CHECKS_AT_ONCE: usize = 16;

/// Space for the scope of a check, and for a few letters.
const SHORTEST_LONG_KEY: usize = 100;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_clause_of_any_level_has_a_name_of_its_own() {
        let clauses = Suite::clauses();
        assert_eq!(clauses.iter().collect::<BTreeSet<_>>().len(), clauses.len(), "{clauses:?}");
    }

    #[test]
    fn a_level_is_the_clauses_it_consists_of() {
        let wanted = |suite: &Suite| {
            all_clauses()
                .filter(|clause| suite.includes(clause))
                .map(|clause| clause.name)
                .collect::<Vec<_>>()
        };
        let levels =
            [Suite::new(1).only_contract(), Suite::new(1).only_leases(), Suite::new(1).only_primitives()];
        assert_eq!(levels.iter().flat_map(wanted).collect::<Vec<_>>(), Suite::clauses());
        assert_eq!(wanted(&Suite::new(1)), Suite::clauses());
    }
}
