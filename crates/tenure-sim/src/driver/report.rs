//! Output of a run of the driver.

use std::fmt::Write as _;

use super::{DriverFocus, DriverHunt, DriverMutant, DriverRun, OutageReport, Reached};
use crate::report::grouped;
use crate::{Fault, Violation};

/// A failure: the invariant, the sentence, the configuration, and the command that replays it.
pub fn driver_failure(
    number: u64,
    focus: DriverFocus,
    violation: &Violation,
    config: &str,
    mutant: Option<&DriverMutant>,
) -> String {
    let mut command = format!("cargo run --profile sim -p tenure-sim -- driver replay --seed {number}");
    let _ = match mutant {
        Some(mutant) => write!(command, " --mutant {}", mutant.name),
        None if focus != DriverFocus::None => write!(command, " --focus {}", focus.name()),
        None => Ok(()),
    };
    let Violation { invariant, at, sentence } = violation;
    format!(
        "seed {number} breaks {invariant} ({}) at{}:\n  {sentence}\n  {config}\n  replay: {command}\n",
        invariant.says(),
        crate::trace::Moment(*at)
    )
}

/// The closing table of a run.
pub fn driver_table(run: &DriverRun) -> String {
    let mut text = String::new();
    let mut row = |words: &str, value: String| {
        let _ = writeln!(text, "  {value:>16}  {words}");
    };
    row("seeds of the driver", grouped(run.seeds));
    row("CPU-seconds", format!("{:.1}", run.cpu.as_secs_f64()));
    row("seconds", format!("{:.1}", run.wall.as_secs_f64()));
    row("violations", grouped(run.violations.len() as u64));
    text.push_str("\nfaults of the network\n");
    for fault in Fault::ALL.iter().filter(|fault| run.tally.faults(**fault) > 0) {
        let _ = writeln!(text, "  {:>16}  {}", grouped(run.tally.faults(*fault)), fault.words());
    }
    text.push_str("\nreached\n");
    for reached in Reached::ALL {
        let count = run.reached.get(reached).copied().unwrap_or_default();
        let _ = writeln!(text, "  {:>16}  {}", grouped(count), reached.words());
    }
    text.push_str(
        "\nfutures dropped after 0, 1, 2, … 7 polls and after more, and the most polls of one future\n",
    );
    text.push_str(&run.drops.table());
    text
}

/// One line of the table of mutants.
pub fn driver_hunted(hunt: &DriverHunt, first: u64) -> String {
    let DriverMutant { name, replaces, caught_by, focus, .. } = hunt.mutant;
    let after = match &hunt.caught {
        Some((number, _)) => grouped(number - first + 1),
        None => "SURVIVED".to_owned(),
    };
    let others: Vec<_> = hunt.by_others.iter().map(|(by, count)| format!("{by} {count}")).collect();
    let others = if others.is_empty() { String::new() } else { format!(" (also by {})", others.join(", ")) };
    let (seconds, focus) = (hunt.wall.as_secs_f64(), focus.name());
    format!("{name:<28} {caught_by:<4} {after:>12} {seconds:>6.1} s  {focus:<10} {replaces}{others}")
}

/// Header of the table of mutants.
pub const DRIVER_HUNTED: &str = "\
mutant                       by   caught after     time  focus      what it does";

/// One line of the table of outages: calls per second, and their ratio to the steady state.
pub fn outage_row(report: &OutageReport) -> String {
    let OutageReport { manner, leases, lost, steady, during, after } = *report;
    let ratio = |calls: u64| calls as f64 / steady as f64;
    format!(
        "{:<46} {:>7} {:>5} {:>7} {:>7} ({:.2}) {:>7} ({:.2})  {}",
        manner.words(),
        grouped(leases),
        lost,
        grouped(steady),
        grouped(during),
        ratio(during),
        grouped(after),
        ratio(after),
        if report.is_good() { "good" } else { "MISSED" }
    )
}

/// Header of the table of outages.
pub const OUTAGES: &str = "\
while the store is down for 5 s                 leases  lost  calls/s  most during it    most after it";
