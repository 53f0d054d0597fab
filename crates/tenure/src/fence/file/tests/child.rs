//! A writer in a process of its own: this test binary, started again.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::super::step::Step;
use super::super::step::faults::{ALL, StepFault, is_left, plan};
use super::{Call, token};

const CALL: &str = "TENURE_TEST_FENCE_CALL";

/// Starts a process that makes this call, to which this happens at this step.
pub(super) fn start(
    call: Call,
    folder: &Path,
    number: u64,
    text: &str,
    step: Step,
    fault: StepFault,
) -> Child {
    let fault = if matches!(fault, StepFault::Stop) { "stop" } else { "kill" };
    let call = Call::ALL.iter().position(|other| *other == call).unwrap();
    let step = ALL.iter().position(|other| *other == step).unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fence::file::tests::child::writer", "--nocapture"])
        .env(CALL, format!("{call}\t{}\t{number}\t{text}\t{step}\t{fault}", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Exit code of a process that did not come to its step.
pub(super) const NOT_REACHED: i32 = 42;

/// Exit code of a process whose call was made after it was stopped and continued.
pub(super) const CONTINUED: i32 = 43;

/// Exit code of a process whose call was refused as stale.
pub(super) const STALE: i32 = 44;

/// The process itself. Without the variable, this is no test.
#[test]
fn writer() {
    let Ok(call) = std::env::var(CALL) else { return };
    let words: Vec<&str> = call.split('\t').collect();
    let [call, folder, number, text, step, fault] = words[..] else { panic!("{call}") };
    let step = ALL[step.parse::<usize>().unwrap()];
    plan(step, if fault == "stop" { StepFault::Stop } else { StepFault::Kill });
    let call = Call::ALL[call.parse::<usize>().unwrap()];
    let made = call.make(Path::new(folder), &token(number.parse().unwrap()), text);
    std::process::exit(match made {
        Err(error) if error.is_stale() => STALE,
        Err(error) => panic!("{error}"),
        Ok(()) if is_left() => NOT_REACHED,
        Ok(()) => CONTINUED,
    });
}
