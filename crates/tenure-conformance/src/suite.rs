use std::sync::Arc;

use tenure_store::Store;

use crate::check::{Check, Clause};
use crate::stop::Stop;
use crate::trial::{Sizes, Trial};
use crate::{Finding, Harness, Report, Verdict, contract};

/// The suite, ready to run.
#[derive(Clone, Debug)]
#[must_use = "a suite does nothing until it is run"]
pub struct Suite {
    run: u128,
    sizes: Sizes,
    connections: usize,
    only: Vec<String>,
}

impl Suite {
    /// A suite that writes only under keys named after `run`.
    ///
    /// The number must not have been used on this store before: nothing is ever deleted, and the checks begin with
    /// keys that do not exist. On a store that is thrown away any number will do.
    pub fn new(run: u128) -> Self {
        Self { run, sizes: Sizes::default(), connections: 4, only: Vec::new() }
    }

    /// How many racers want the same key at the same time. 64 unless told.
    pub fn racers(mut self, racers: usize) -> Self {
        self.sizes.racers = racers.max(2);
        self
    }

    /// How many rounds each kind of race has. 100 unless told: a server that is almost atomic loses one in many.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.sizes.rounds = rounds.max(1);
        self
    }

    /// How many keys the long listing has. 1100 unless told: object stores give them out in pages of a thousand.
    pub fn listed(mut self, listed: usize) -> Self {
        self.sizes.listed = listed.max(2);
        self
    }

    /// Over how many connections the racers are spread. 4 unless told, and at least 2.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(2);
        self
    }

    /// Makes only the checks of this clause; may be given several times.
    pub fn only(mut self, clause: impl Into<String>) -> Self {
        self.only.push(clause.into());
        self
    }

    /// The names of all clauses, in order.
    pub fn clauses() -> Vec<&'static str> {
        contract::CLAUSES.iter().map(|clause| clause.name).collect()
    }

    /// Makes every check, one after another.
    pub async fn run(&self, harness: &dyn Harness) -> Report {
        let mut connections = Vec::with_capacity(self.connections);
        for _ in 0..self.connections {
            connections.push(harness.open().await);
        }

        let mut findings = Vec::new();
        for clause in contract::CLAUSES.iter().filter(|clause| self.wants(clause)) {
            for check in clause.checks {
                let scope = format!("conformance-{:x}/{}", self.run, findings.len());
                findings.push(self.make(harness, &connections, scope, clause.name, check).await);
            }
        }
        Report { store: harness.name(), findings }
    }

    fn wants(&self, clause: &Clause) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == clause.name)
    }

    async fn make(
        &self,
        harness: &dyn Harness,
        connections: &[Arc<dyn Store>],
        scope: String,
        clause: &'static str,
        check: &Check,
    ) -> Finding {
        let trial = Trial::new(harness, connections, self.sizes, scope);
        let verdict = match (check.run)(&trial).await {
            Ok(()) => Verdict::Passed,
            Err(Stop::Failed(why)) => Verdict::Failed(why),
            Err(Stop::Skipped(why)) => Verdict::Skipped(why),
        };
        Finding { clause, check: check.name, verdict, note: trial.into_note() }
    }
}
