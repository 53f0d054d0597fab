use tenure_sim::{DriverFocus, DriverMutant, DriverSeed, Focus, Mutant, Seed};

/// Parsed command line.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) command: Command,
    /// The first seed, or the seed to replay.
    pub(crate) first: u64,
    /// Number of seeds; for mutants, the largest number that each may need.
    pub(crate) seeds: u64,
    pub(crate) minutes: u64,
    pub(crate) workers: Option<usize>,
    pub(crate) focus: Option<Focus>,
    pub(crate) mutant: Option<&'static Mutant>,
    pub(crate) driver_focus: DriverFocus,
    pub(crate) driver_mutant: Option<&'static DriverMutant>,
    /// Leases of the process in an outage.
    pub(crate) leases: u64,
}

/// Subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run,
    Replay,
    Mutants,
    /// The same three in the world of the driver.
    Driver,
    DriverReplay,
    DriverMutants,
    Failover,
    /// The scenario with many leases and one outage.
    DriverOutage,
}

pub(crate) const HELP: &str = "\
Attacks Tenure's lease protocol in a simulated world. Start it with cargo run --profile sim -p tenure-sim -- COMMAND:
without the debug assertions of that profile it refuses to run (78).

  tenure-sim run      run many seeds; fails if an invariant is broken or a count is below its quota
  tenure-sim replay   run one seed and print its trace
  tenure-sim mutants  break one rule at a time; fails unless the right invariant catches each

  tenure-sim driver, driver replay, driver mutants
                      the same in the world of the driver: the production keeper, coordinator, leases, handles, observers,
                      elections, slots, sets and plain keys under virtual time
  tenure-sim driver outage
                      many leases of one process, while the store is down for a third of their ttl; fails if one is lost, or
                      if the calls per second exceed twice the usual number

  tenure-sim failover measure the time from the end of a holder to the next grant, with reads in phase and at random
                      phases, and the reads of a crowd; fails if a goal is missed

  --seeds N     number of seeds to run                                     (40000)
                (driver: 2000; failover: holders that end in each situation, 2000)
  --budget N    largest number of seeds that each mutant may need          (40000)
  --seed N      the first seed, or the one to replay                       (0)
  --minutes N   simulated minutes during which faults strike in a seed     (60)
                (a third of them in the world of the primitives)
  --leases N    number of leases in an outage                              (10000)
  --workers N   number of threads; the result does not depend on it        (all cores)
  --focus NAME  bias seeds towards one kind of situation: clocks, slow-reads, witnesses, deletions, ticks,
                restores, recounting, clockless, going-back, stealers, unknowns, slow-work, stubborn, foreign, twins,
                scripts, restarts, outages, liars, fairness, calm; in the world of the primitives: primitives (all of
                them), elected-twins, elected-in-turn, sets, keys, slots, jobs; in the world of the driver: calm, whole,
                witnesses, paced, hints, keys, panics, shutdowns, liars, credentials, crowded, outage, pages, primitives
  --mutant NAME replay under one mutant, or hunt only this one
  --help        print this text";

impl Command {
    fn is_of_driver(self) -> bool {
        matches!(self, Self::Driver | Self::DriverReplay | Self::DriverMutants | Self::DriverOutage)
    }
}

impl Args {
    /// Parses the arguments; `None` if help was requested.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut args = args.peekable();
        let command = match args.next().as_deref() {
            Some("run") => Command::Run,
            Some("replay") => Command::Replay,
            Some("mutants") => Command::Mutants,
            Some("driver") => match args.next_if(|next| !next.starts_with('-')).as_deref() {
                None | Some("run") => Command::Driver,
                Some("replay") => Command::DriverReplay,
                Some("mutants") => Command::DriverMutants,
                Some("outage") => Command::DriverOutage,
                Some(other) => return Err(format!("{other:?} is not a command of the driver")),
            },
            Some("failover") => Command::Failover,
            Some("--help" | "-h" | "help") => return Ok(None),
            Some(other) => return Err(format!("{other:?} is not a command")),
            None => return Err("a command is missing".to_owned()),
        };
        let mut parsed = Self {
            command,
            first: 0,
            seeds: 40_000,
            minutes: if command.is_of_driver() { DriverSeed::MINUTES } else { Seed::MINUTES },
            workers: None,
            focus: None,
            mutant: None,
            driver_focus: DriverFocus::None,
            driver_mutant: None,
            leases: 10_000,
        };
        if command.is_of_driver() || command == Command::Failover {
            parsed.seeds = DRIVER_SEEDS;
        }
        let mut said_seed = false;
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--seeds" if matches!(command, Command::Run | Command::Driver | Command::Failover) => {
                    parsed.seeds = number(&flag, &value()?, 1)?
                }
                "--help" | "-h" => return Ok(None),
                other if command == Command::Failover => {
                    return Err(format!("{other:?} is not an option of this command"));
                }
                "--budget" if matches!(command, Command::Mutants | Command::DriverMutants) => {
                    parsed.seeds = number(&flag, &value()?, 1)?
                }
                "--leases" if command == Command::DriverOutage => {
                    parsed.leases = number(&flag, &value()?, 1)?
                }
                "--seed" => {
                    parsed.first = number(&flag, &value()?, 0)?;
                    said_seed = true;
                }
                "--minutes" => parsed.minutes = number(&flag, &value()?, 1)?.min(MINUTES_MAX),
                "--workers" => parsed.workers = Some(number(&flag, &value()?, 1)? as usize),
                "--focus" if command.is_of_driver() && command != Command::DriverOutage => {
                    let name = value()?;
                    let focus = DriverFocus::named(&name);
                    parsed.driver_focus =
                        focus.ok_or_else(|| format!("{name:?} is not a focus of the driver"))?;
                }
                "--mutant" if matches!(command, Command::DriverReplay | Command::DriverMutants) => {
                    let name = value()?;
                    let mutant = DriverMutant::named(&name);
                    parsed.driver_mutant =
                        Some(mutant.ok_or_else(|| format!("{name:?} is not a mutant of the driver"))?);
                }
                "--focus" if command != Command::DriverOutage => {
                    let name = value()?;
                    parsed.focus =
                        Some(Focus::named(&name).ok_or_else(|| format!("{name:?} is not a focus"))?);
                }
                "--mutant" if matches!(command, Command::Replay | Command::Mutants) => {
                    let name = value()?;
                    parsed.mutant =
                        Some(Mutant::named(&name).ok_or_else(|| format!("{name:?} is not a mutant"))?);
                }
                other => return Err(format!("{other:?} is not an option of this command")),
            }
        }
        match parsed.command {
            Command::Replay | Command::DriverReplay if !said_seed => Err("replay needs --seed".to_owned()),
            _ => Ok(Some(parsed)),
        }
    }
}

fn number(flag: &str, text: &str, least: u64) -> Result<u64, String> {
    let number = text.parse().map_err(|_| format!("{flag} needs a whole number, not {text:?}"))?;
    if number < least { Err(format!("{flag} must be at least {least}")) } else { Ok(number) }
}

/// Seeds of the driver, and the largest number that each of its mutants may need.
const DRIVER_SEEDS: u64 = 2000;

/// Three months: true time in nanoseconds is far from an overflow.
const MINUTES_MAX: u64 = 60 * 24 * 90;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Args>, String> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_parsed_and_the_others_have_defaults() {
        let args = parse("run --seeds 12 --seed 7 --minutes 5 --workers 3 --focus clocks").unwrap().unwrap();
        assert_eq!((args.command, args.seeds, args.first), (Command::Run, 12, 7));
        assert_eq!((args.minutes, args.workers, args.focus), (5, Some(3), Some(Focus::Clocks)));
        let args = parse("mutants --mutant no-fence --budget 9").unwrap().unwrap();
        assert_eq!((args.seeds, args.minutes), (9, Seed::MINUTES));
        assert_eq!(args.mutant.map(|mutant| mutant.name), Some("no-fence"));
        assert!(parse("replay --help").unwrap().is_none());
    }

    #[test]
    fn wrong_arguments_are_errors_with_a_message() {
        for line in [
            "",
            "walk",
            "run --seeds",
            "run --seeds 0",
            "run --seeds many",
            "run --mutant no-fence",
            "run --focus nowhere",
            "replay",
            "replay --seed 1 --seeds 2",
            "replay --seed -1",
            "mutants --mutant nothing",
            "mutants --workers 0",
            "failover --seed 1",
            "driver --leases 5",
            "driver outage --leases 0",
            "driver outage --focus calm",
        ] {
            assert!(!parse(line).unwrap_err().is_empty(), "{line}");
        }
    }

    #[test]
    fn the_help_names_every_focus() {
        for focus in Focus::ALL.iter().filter(|focus| **focus != Focus::None) {
            assert!(HELP.contains(focus.name()), "{}", focus.name());
        }
        for focus in DriverFocus::ALL.iter().filter(|focus| **focus != DriverFocus::None) {
            assert!(HELP.contains(focus.name()), "{}", focus.name());
        }
    }
}
