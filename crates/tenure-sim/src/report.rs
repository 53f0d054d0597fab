//! Output of a run.

use std::fmt::Write as _;

use crate::{Fault, Focus, Hunt, Met, Mutant, Number, Run, Seed, Sometimes, Violation};

/// The command that replays a seed.
pub(crate) fn replay(seed: &Seed, mutant: Option<&Mutant>) -> String {
    let mut command = format!("cargo run --profile sim -p tenure-sim -- replay --seed {}", seed.number);
    if seed.minutes != Seed::MINUTES {
        let _ = write!(command, " --minutes {}", seed.minutes);
    }
    match mutant {
        Some(mutant) => {
            let _ = write!(command, " --mutant {}", mutant.name);
        }
        None if seed.focus != Focus::None => {
            let _ = write!(command, " --focus {}", seed.focus.name());
        }
        None => {}
    }
    command
}

/// A failure: the invariant, the sentence, the configuration, and the command that replays it.
pub fn failure(seed: &Seed, violation: &Violation, config: &str, mutant: Option<&Mutant>) -> String {
    let (number, command) = (seed.number, replay(seed, mutant));
    let Violation { invariant, at, sentence } = violation;
    format!(
        "seed {number} breaks {invariant} ({}) at{}:\n  {sentence}\n  {config}\n  replay: {command}\n",
        invariant.says(),
        crate::trace::Moment(*at)
    )
}

/// The closing table of a run.
pub fn table(run: &Run) -> String {
    let mut text = String::new();
    let tally = &run.tally;
    let mut row = |words: &str, value: String| {
        let _ = writeln!(text, "  {value:>16}  {words}");
    };
    let events = tally.number(Number::Events);
    let calls = tally.number(Number::Reads) + tally.number(Number::Writes);
    let years = tally.number(Number::Nanos) as f64 / 1e9 / 86_400.0 / 365.25;
    let cpu = run.cpu.as_secs_f64();
    row("seeds", grouped(run.seeds));
    row("simulated years", format!("{years:.2}"));
    row("events", grouped(events));
    row("events per CPU-second", grouped((events as f64 / cpu.max(1e-9)) as u64));
    row("CPU-seconds", format!("{cpu:.1}"));
    row("seconds", format!("{:.1}", run.wall.as_secs_f64()));
    row("store calls per event", format!("{:.3}", calls as f64 / events.max(1) as f64));
    let primitives = run.focus.is_of_primitives();
    // The world of the primitives has only some of these faults and numbers.
    let belongs = |count: u64| count > 0 || !primitives;
    for number in Number::ALL.iter().filter(|it| !matches!(it, Number::Events | Number::Nanos)) {
        let count = tally.number(*number);
        if belongs(count) {
            row(number.words(), grouped(count));
        }
    }
    if !primitives {
        row("stale writes stopped", grouped(tally.sometimes(Sometimes::StaleWriteStopped)));
    }
    row("violations", grouped(run.violations.len() as u64));
    text.push_str("\nfaults\n");
    for fault in Fault::ALL.iter().filter(|fault| belongs(tally.faults(**fault))) {
        let _ = writeln!(text, "  {:>16}  {}", grouped(tally.faults(*fault)), fault.words());
    }
    text.push_str("\nreached\n");
    let reached = Sometimes::ALL.iter().map(|it| (tally.sometimes(*it), it.words()));
    let met = Met::ALL.iter().map(|it| (tally.of_primitives(*it), it.words()));
    for (count, words) in reached.filter(|_| !primitives).chain(met.filter(|_| primitives)) {
        let _ = writeln!(text, "  {:>16}  {words}", grouped(count));
    }
    text
}

/// Header of the table of mutants.
pub const HUNTED: &str = "\
mutant                   by   caught after  of seeds    time  focus           what it does";

/// One line of the table of mutants.
pub fn hunted(hunt: &Hunt, first: u64) -> String {
    let Mutant { name, replaces, caught_by, focus, .. } = hunt.mutant;
    let (caught, of) = hunt.share;
    let after = match &hunt.caught {
        Some((number, _)) => grouped(number - first + 1),
        None => "SURVIVED".to_owned(),
    };
    let share = caught as f64 * 100.0 / of.max(1) as f64;
    let (seconds, focus) = (hunt.wall.as_secs_f64(), focus.name());
    format!("{name:<24} {caught_by:<4} {after:>12} {share:>7.1} % {seconds:>5.1} s  {focus:<15} {replaces}")
}

/// A number with commas between the thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_separated_by_commas() {
        assert_eq!(["0", "999", "1,000", "12,345,678"], [0, 999, 1000, 12_345_678].map(grouped).as_slice());
    }
}
