//! Summary of all lanes, and their cost.

use std::collections::BTreeMap;
use std::path::Path;

use crate::outcome::Outcome;
use crate::plan::{BUDGET, mode, store_of};

/// Prints the tests that ran, and the cost of each store's tests. False if a store is above its budget.
pub(crate) fn report(directory: &Path) -> bool {
    let rows = std::fs::read_to_string(directory.join("rows")).unwrap_or_default();
    let outcomes: Vec<_> = rows.lines().filter_map(Outcome::parse).collect();
    let mut stores: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in &outcomes {
        stores.entry(store_of(&outcome.name).unwrap_or("")).or_default().push(outcome);
    }
    let mut good = true;
    for (store, mut outcomes) in stores {
        let cost = outcomes.iter().map(|outcome| outcome.cost()).sum::<f64>();
        if store.is_empty() {
            println!("tests of no store: {cost:.0} s");
            continue;
        }
        // The full quotas of `./test long` have no budget.
        let above = cost > BUDGET && mode() != "long";
        good &= !above;
        println!("{store}: {cost:.0} s of {BUDGET:.0} s{}", if above { ", ABOVE ITS BUDGET" } else { "" });
        outcomes.sort_by(|one, other| other.cost().total_cmp(&one.cost()));
        for outcome in outcomes {
            let Outcome { name, wall, busy, .. } = outcome;
            println!("  {name:<40} {:>6.1} s (clock {wall:.1} s, processor {busy:.1} s)", outcome.cost());
        }
    }
    let sum = |number: fn(&Outcome) -> u64| outcomes.iter().map(number).sum::<u64>();
    println!(
        "{} tests passed, {} failed; {} were not run: processes of other tests, and servers not asked for",
        sum(|outcome| outcome.passed),
        sum(|outcome| outcome.failed),
        sum(|outcome| outcome.ignored)
    );
    good
}
