//! The command: `run`, `replay`, `mutants`, `driver` and `failover`.

mod args;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use tenure_sim::{
    DRIVER_HUNTED, DRIVER_MUTANTS, DriverFocus, DriverMutant, DriverRun, DriverSeed, OUTAGES, OutageManner,
    OutageScenario, driver_failure, driver_hunted, driver_table, outage_row,
};
use tenure_sim::{Fleet, Focus, HUNTED, Hunt, MUTANTS, Seed, failure, hunted, table};

use args::{Args, Command};

/// Prints a line. Exits with 141 if the reader has closed the pipe, as in `replay … | head`.
macro_rules! say {
    ($($text:tt)*) => {
        if writeln!(std::io::stdout(), $($text)*).is_err() {
            std::process::exit(141);
        }
    };
}

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            say!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("{wrong}\n\n{}", args::HELP);
            return ExitCode::from(64);
        }
    };
    if let Some(words) = refusal(cfg!(debug_assertions)) {
        eprintln!("{words}");
        return ExitCode::from(78);
    }
    let good = match args.command {
        Command::Run => run(&args),
        Command::Replay => replay(&args),
        Command::Mutants => mutants(&args),
        Command::Driver => driver(&args),
        Command::DriverReplay => driver_replay(&args),
        Command::DriverMutants => driver_mutants(&args),
        Command::Failover => failover(&args),
        Command::DriverOutage => driver_outage(&args),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The reason not to run: without assertions, a violation may pass unseen.
fn refusal(has_assertions: bool) -> Option<&'static str> {
    (!has_assertions).then_some(
        "tenure-sim is built without debug assertions, which find violations: build it with --profile sim, as in \
         cargo run --profile sim -p tenure-sim -- run",
    )
}

fn fleet(args: &Args) -> Fleet {
    let mut fleet = Fleet { minutes: args.minutes, ..Fleet::new() };
    if let Some(workers) = args.workers {
        fleet.workers = workers;
    }
    fleet
}

fn run(args: &Args) -> bool {
    let focus = args.focus.unwrap_or_default();
    let run = fleet(args).run(args.first, args.seeds, focus);
    for (number, violation, config) in run.violations.iter().take(FAILURES_SHOWN) {
        let seed = Seed::new(*number).minutes(args.minutes).focus(focus);
        say!("{}", failure(&seed, violation, config, None));
    }
    say!("{}", table(&run));
    let mut good = run.violations.is_empty();
    if args.minutes >= Seed::MINUTES {
        let missed = match focus {
            Focus::None if args.seeds >= QUOTA_SEEDS => run.tally.below_quota(args.seeds),
            Focus::Primitives if args.seeds >= QUOTA_SEEDS / 2 => {
                run.tally.below_quota_of_primitives(args.seeds)
            }
            _ => Vec::new(),
        };
        for words in &missed {
            say!("below quota: {words}");
        }
        good &= missed.is_empty();
    }
    say!("{}", if good { "all invariants held" } else { "FAILED" });
    good
}

fn replay(args: &Args) -> bool {
    let focus = args.focus.unwrap_or_default();
    let mut seed = Seed::new(args.first).minutes(args.minutes).focus(focus).readable();
    if let Some(mutant) = args.mutant {
        seed = seed.with(mutant);
    }
    let outcome = seed.run();
    say!("{}", outcome.config);
    for line in &outcome.lines {
        say!("{line}");
    }
    say!("trace {:016x}", outcome.hash);
    match &outcome.violation {
        None => say!("all invariants held"),
        Some(violation) => say!("{}", failure(&seed, violation, "", args.mutant)),
    }
    outcome.violation.is_none()
}

/// Hunts every mutant, then runs the same seeds without a mutant.
fn mutants(args: &Args) -> bool {
    let fleet = fleet(args);
    let chosen = MUTANTS.iter().filter(|it| args.mutant.is_none_or(|mutant| mutant.name == it.name));
    let mut good = true;
    let mut seeds_by_focus: BTreeMap<&str, (Focus, u64)> = BTreeMap::new();
    say!("{HUNTED}");
    for mutant in chosen {
        let hunt: Hunt = fleet.hunt(mutant, args.first, args.seeds);
        say!("{}", hunted(&hunt, args.first));
        good &= hunt.caught.is_some();
        let needed = hunt.caught.as_ref().map_or(args.seeds, |(number, _)| number - args.first + 1);
        let entry = seeds_by_focus.entry(mutant.focus.name()).or_insert((mutant.focus, CLEAN_SEEDS));
        entry.1 = entry.1.max(needed);
    }
    say!("\nthe same seeds without a mutant:");
    for (name, (focus, seeds)) in seeds_by_focus {
        let run = fleet.run(args.first, seeds, focus);
        let verdict = if run.violations.is_empty() { "all invariants held" } else { "FAILED" };
        say!("  {name:<15} {seeds:>6} seeds  {verdict}");
        for (number, violation, config) in run.violations.iter().take(FAILURES_SHOWN) {
            let seed = Seed::new(*number).minutes(args.minutes).focus(focus);
            say!("{}", failure(&seed, violation, config, None));
        }
        good &= run.violations.is_empty();
    }
    say!("{}", if good { "every mutant was caught by its invariant" } else { "FAILED" });
    good
}

fn driver(args: &Args) -> bool {
    let run = fleet(args).run_driver(args.first, args.seeds, args.driver_focus);
    for (number, violation, config) in run.violations.iter().take(FAILURES_SHOWN) {
        say!("{}", driver_failure(*number, args.driver_focus, violation, config, None));
    }
    say!("{}", driver_table(&run));
    let mut good = run.violations.is_empty();
    let has_quotas = args.driver_focus == DriverFocus::None
        && args.seeds >= DriverRun::QUOTA_SEEDS
        && args.minutes >= DriverSeed::MINUTES;
    if has_quotas {
        let missed = run.below_quota();
        for words in &missed {
            say!("below quota: {words}");
        }
        good &= missed.is_empty();
    }
    say!("{}", if good { "all invariants held" } else { "FAILED" });
    good
}

fn driver_replay(args: &Args) -> bool {
    let mut seed = DriverSeed::new(args.first).minutes(args.minutes).focus(args.driver_focus).readable();
    if let Some(mutant) = args.driver_mutant {
        seed = seed.with(mutant);
    }
    let outcome = seed.run();
    say!("{}", outcome.config);
    for line in &outcome.lines {
        say!("{line}");
    }
    say!("trace {:016x}", outcome.hash);
    match &outcome.violation {
        None => say!("all invariants held"),
        Some(violation) => {
            say!("{}", driver_failure(args.first, args.driver_focus, violation, "", args.driver_mutant));
        }
    }
    outcome.violation.is_none()
}

/// Hunts every mutant of the driver.
fn driver_mutants(args: &Args) -> bool {
    let fleet = fleet(args);
    let is_chosen = |it: &&DriverMutant| args.driver_mutant.is_none_or(|mutant| mutant.name == it.name);
    let mut good = true;
    say!("{DRIVER_HUNTED}");
    for mutant in DRIVER_MUTANTS.iter().filter(is_chosen) {
        let hunt = fleet.hunt_driver(mutant, args.first, args.seeds);
        say!("{}", driver_hunted(&hunt, args.first));
        good &= hunt.caught.is_some();
    }
    say!("{}", if good { "every mutant was caught by its invariant" } else { "FAILED" });
    good
}

/// Measures takeovers, and the reads of a crowd.
fn failover(args: &Args) -> bool {
    let (table, good) = tenure_sim::failover(args.seeds);
    say!("{table}");
    say!("{}", if good { "every goal was met" } else { "FAILED" });
    good
}

/// Runs an outage of each manner.
fn driver_outage(args: &Args) -> bool {
    say!("{OUTAGES}");
    let mut good = true;
    for manner in OutageManner::ALL {
        let (report, _) = OutageScenario::new(args.leases, *manner, args.first).run();
        say!("{}", outage_row(&report));
        good &= report.is_good();
    }
    say!(
        "{}",
        if good { "no lease was lost, and no second had more than twice the usual calls" } else { "FAILED" }
    );
    good
}

/// Least number of seeds that run without a mutant, however soon the mutant was caught.
const CLEAN_SEEDS: u64 = 200;

/// Largest number of failures to print: more add no information.
const FAILURES_SHOWN: usize = 5;

/// Least number of seeds for the quotas to apply: fewer cannot be expected to reach every rare state.
const QUOTA_SEEDS: u64 = 2000;

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn the_simulation_refuses_to_run_without_assertions() {
        assert!(refusal(false).is_some_and(|words| words.contains("build it with --profile sim")));
        assert_eq!(refusal(cfg!(debug_assertions)), None, "these tests need assertions, too");
    }
}
