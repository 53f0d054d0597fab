use std::time::Duration;

use serde_json::{Value, json};

use crate::args::is_ci;
use crate::attack::Attack;
use crate::verdict::AttackVerdict;

/// Results of the attacks, in the order of the list.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    number: usize,
    name: String,
    promise: &'static str,
    verdict: AttackVerdict,
    took: Duration,
}

impl Table {
    pub(crate) fn add(&mut self, number: usize, attack: &Attack, verdict: AttackVerdict, took: Duration) {
        self.rows.push(Row { number, name: attack.name.clone(), promise: attack.promise, verdict, took });
        self.rows.sort_by_key(|row| row.number);
    }

    /// True if no promise was broken and, in CI, no attack was skipped.
    pub(crate) fn is_good(&self) -> bool {
        self.rows.iter().all(|row| match row.verdict {
            AttackVerdict::Held(_) | AttackVerdict::KnownLimit(_) => true,
            AttackVerdict::Skipped(_) => !is_ci(),
            AttackVerdict::Broken(_) => false,
        })
    }

    pub(crate) fn print(&self) {
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        println!("\n{:width$}  {:11}  {:>5}  PROMISE", "ATTACK", "VERDICT", "SEC");
        for row in &self.rows {
            let seconds = row.took.as_secs_f64();
            println!("{:width$}  {:11}  {seconds:>5.1}  {}", row.name, row.verdict.word(), row.promise);
        }
        println!("\nEvidence:");
        for row in &self.rows {
            println!("  {} ({}): {}", row.name, row.verdict.word(), row.verdict.evidence());
        }
        let count =
            |wanted: fn(&AttackVerdict) -> bool| self.rows.iter().filter(|row| wanted(&row.verdict)).count();
        println!(
            "\n{} passed, {} failed, {} skipped",
            count(|verdict| matches!(verdict, AttackVerdict::Held(_) | AttackVerdict::KnownLimit(_))),
            count(|verdict| matches!(verdict, AttackVerdict::Broken(_))),
            count(|verdict| matches!(verdict, AttackVerdict::Skipped(_))),
        );
    }

    pub(crate) fn print_json(&self) {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "attack": row.name,
                    "promise": row.promise,
                    "verdict": row.verdict.word(),
                    "evidence": row.verdict.evidence(),
                    "seconds": row.took.as_secs_f64(),
                })
            })
            .collect();
        println!("{}", Value::Array(rows));
    }
}
