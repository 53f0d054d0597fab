//! Result and cost of one test binary.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tenure_testkit::quota;

use crate::test_binary::TestBinary;

/// Result of one test binary, and its cost in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) good: bool,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    /// Elapsed time.
    pub(crate) wall: f64,
    /// Processor time of the binary, and of the processes that it waited for.
    pub(crate) busy: f64,
    /// Elapsed time during which some process of the machine waited for a processor.
    pub(crate) stalled: f64,
}

impl Outcome {
    /// Runs a binary with its output in a log.
    pub(crate) fn of(binary: &TestBinary, arguments: &[&str], log: &Path) -> io::Result<Self> {
        let output = File::create(log)?;
        let (began, stalled) = (Instant::now(), stalled_so_far());
        let mut child = Command::new(&binary.program)
            .args(arguments)
            .current_dir(&binary.directory)
            .env("CARGO_MANIFEST_DIR", &binary.directory)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()?;
        let pid = Pid::from_child(&child);
        let longest = Duration::from_secs(quota(LONGEST, LONGEST_OF_LONG));
        // The child stays a zombie until its times are read.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(pid), ended)?.is_none() {
            if began.elapsed() > longest {
                child.kill()?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let busy = busy_of(pid);
        let good = child.wait()?.success();
        let said = std::fs::read_to_string(log).unwrap_or_default();
        let [passed, failed, ignored] = counts(&said);
        Ok(Self {
            name: binary.name.clone(),
            good,
            passed,
            failed,
            ignored,
            wall: began.elapsed().as_secs_f64(),
            busy,
            // If the kernel does not count waiting, only processor time is charged.
            stalled: stalled_so_far().zip(stalled).map_or(f64::INFINITY, |(now, then)| now - then),
        })
    }

    /// The time to charge. It is the larger of two numbers: the processor time divided by the number of processors, and
    /// the elapsed time without the periods in which some process waited for a processor. On an idle machine that is
    /// the elapsed time. On a loaded one, where the elapsed time depends more on the load than on the tests, it is
    /// less.
    pub(crate) fn cost(&self) -> f64 {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (self.busy / processors as f64).max(self.wall - self.stalled)
    }

    /// The row of a file that [`parse`](Self::parse) reads.
    pub(crate) fn row(&self) -> String {
        let Self { name, good, passed, failed, ignored, wall, busy, stalled } = self;
        format!("{name}\t{good}\t{passed}\t{failed}\t{ignored}\t{wall:.2}\t{busy:.2}\t{stalled:.2}\n")
    }

    pub(crate) fn parse(row: &str) -> Option<Self> {
        let [name, good, passed, failed, ignored, wall, busy, stalled] =
            <[&str; 8]>::try_from(row.split('\t').collect::<Vec<_>>()).ok()?;
        Some(Self {
            name: name.to_owned(),
            good: good.parse().ok()?,
            passed: passed.parse().ok()?,
            failed: failed.parse().ok()?,
            ignored: ignored.parse().ok()?,
            wall: wall.parse().ok()?,
            busy: busy.parse().ok()?,
            stalled: stalled.parse().ok()?,
        })
    }
}

/// The part of a log that reports the failures; the end of the log if the binary did not report any.
pub(crate) fn failures(said: &str) -> String {
    match said.find("\nfailures:\n") {
        Some(at) => said[at..].to_owned(),
        None => {
            let lines: Vec<_> = said.lines().collect();
            lines[lines.len().saturating_sub(100)..].join("\n")
        }
    }
}

/// Passed, failed and ignored, from the last result in a log: earlier results are of binaries that the tests started.
fn counts(said: &str) -> [u64; 3] {
    let last = said.lines().rev().find(|line| line.starts_with("test result: ")).unwrap_or_default();
    let words: Vec<_> = last.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    ["passed", "failed", "ignored"].map(|what| {
        let number = words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse().ok());
        number.unwrap_or_default()
    })
}

/// Processor time of a process that has exited but is not reaped, and of its children, in seconds.
fn busy_of(pid: Pid) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    let ticks: f64 = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// Total time during which some process waited for a processor, since boot; `None` if the kernel does not count it.
fn stalled_so_far() -> Option<f64> {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let (_, micros) = pressure.lines().find_map(|line| line.strip_prefix("some ")?.rsplit_once("total="))?;
    Some(micros.parse::<f64>().ok()? / 1e6)
}

/// Longest time of a binary, in seconds: one that runs longer hangs.
const LONGEST: u64 = 900;

/// The same with the long quotas.
const LONGEST_OF_LONG: u64 = 1800;

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "running 1 test\ntest result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n\
        \nfailures:\n\n---- a stdout ----\nsomething\n\
        test result: FAILED. 12 passed; 2 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

    #[test]
    fn the_last_result_counts_and_failures_are_shown() {
        assert_eq!(counts(SAID), [12, 2, 3]);
        assert_eq!(counts("it crashed"), [0, 0, 0]);
        assert!(failures(SAID).contains("something") && !failures(SAID).contains("7 passed"));
        assert_eq!(failures("it crashed"), "it crashed");
    }

    #[test]
    fn load_is_not_charged_and_processor_time_always_is() {
        let outcome = |wall, busy, stalled| Outcome {
            name: "a/b".to_owned(),
            good: true,
            passed: 1,
            failed: 0,
            ignored: 0,
            wall,
            busy,
            stalled,
        };
        let processors = std::thread::available_parallelism().unwrap().get() as f64;
        assert_eq!(outcome(100.0, 5.0, 0.0).cost(), 100.0);
        assert_eq!(outcome(100.0, 5.0, 80.0).cost(), 20.0_f64.max(5.0 / processors));
        assert_eq!(outcome(100.0, 60.0 * processors, 90.0).cost(), 60.0);
        assert_eq!(outcome(100.0, 5.0 * processors, f64::INFINITY).cost(), 5.0);
        for stalled in [3.5, f64::INFINITY] {
            let outcome = outcome(1.5, 2.5, stalled);
            assert_eq!(Outcome::parse(outcome.row().trim_end()), Some(outcome));
        }
    }

    #[test]
    fn the_processor_time_of_children_is_counted() {
        let program = ["/bin/sh", "/usr/bin/sh"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        let binary = TestBinary { name: "a/b".to_owned(), directory: "/".into(), program: program.into() };
        let log = std::env::temp_dir().join(format!("test-lanes-{}", std::process::id()));
        let work = "sh -c 'n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done'; echo said; exit 3";
        let outcome = Outcome::of(&binary, &["-c", work], &log).unwrap();
        assert!(!outcome.good && outcome.busy > 0.02 && outcome.wall > 0.02, "{outcome:?}");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "said\n");
        std::fs::remove_file(&log).unwrap();
    }
}
