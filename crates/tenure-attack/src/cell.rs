//! The two processes of one attack: the first process of its pid namespace, and the attacker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::sys::wait::{WaitStatus, wait};
use serde_json::Value;

use crate::arena::Arena;
use crate::attacks;
use crate::cgroup;
use crate::verdict::AttackVerdict;

/// First process of the namespace: it starts the attacker and, as an init does, reaps orphaned processes.
pub(crate) fn main(words: &[String]) -> ExitCode {
    let [_, directory, group, _] = words else { return ExitCode::from(64) };
    if group != NO_CGROUP
        && let Err(error) = cgroup::enter(Path::new(group), std::process::id() as i32)
    {
        eprintln!("{error}");
        return ExitCode::from(69);
    }
    // A pid of five digits does not occur in a message by chance. The setting belongs to this pid namespace.
    let _ = fs::write("/proc/sys/kernel/ns_last_pid", "20000");
    let attacker = Command::new(own_program()).arg(INSIDE).args(words).current_dir(directory).spawn();
    let Ok(attacker) = attacker else { return ExitCode::from(69) };
    loop {
        match wait() {
            Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..))
                if pid.as_raw() == attacker.id() as i32 =>
            {
                return ExitCode::SUCCESS;
            }
            Ok(_) => {}
            Err(_) => return ExitCode::from(70),
        }
    }
}

/// The attacker: runs one attack and writes its verdict to a file.
pub(crate) fn inside(words: &[String]) -> ExitCode {
    let [name, directory, group, manner] = words else { return ExitCode::from(64) };
    let Some(attack) = attacks::all().into_iter().find(|attack| attack.name == *name) else {
        return ExitCode::from(64);
    };
    let group = (group != NO_CGROUP).then(|| PathBuf::from(group));
    let arena = Arena::new(directory.into(), group, manner == MACHINE_WIDE);
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let arena = arena.as_ref().map_err(Clone::clone)?;
        (attack.run)(arena)
    }));
    let verdict = match ran {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(evidence)) => AttackVerdict::Broken(evidence),
        Err(_) => AttackVerdict::Broken("the attack itself panicked".to_owned()),
    };
    let written = fs::write(verdict_file(Path::new(directory)), verdict.to_json().to_string());
    ExitCode::from(u8::from(written.is_err()))
}

/// Verdict that the attacker wrote.
pub(crate) fn verdict_in(directory: &Path) -> AttackVerdict {
    let read = || {
        AttackVerdict::from_json(
            &serde_json::from_slice::<Value>(&fs::read(verdict_file(directory)).ok()?).ok()?,
        )
    };
    read().unwrap_or_else(|| AttackVerdict::Broken("the attacker exited without a verdict".to_owned()))
}

/// Path of this program.
fn own_program() -> PathBuf {
    std::env::current_exe().expect("/proc is mounted")
}

fn verdict_file(directory: &Path) -> PathBuf {
    directory.join("verdict.json")
}

pub(crate) const WORD: &str = "cell";

pub(crate) const INSIDE: &str = "inside";

pub(crate) const NO_CGROUP: &str = "-";

pub(crate) const MACHINE_WIDE: &str = "machine-wide";

pub(crate) const GENTLE: &str = "gentle";
