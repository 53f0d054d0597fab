//! Programs that fork, panic or stop while they use the library.

use rustix::process::Signal;

use crate::arena::{Arena, Who};
use crate::attack::Attack;
use crate::process::send;
use crate::verdict::{AttackOutcome, broken, held};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("library/a forked child connects again, its parent waits", FORKED, forked),
        Attack::new("library/a store panics on one key", ONE_CALL, panicking),
        Attack::new("library/a holder is stopped past its ttl, then continued", NOTHING_REVIVES, stopped),
    ]
}

/// The kernel must wake the parent's contender, whose next poll is in 20 s.
fn forked(arena: &Arena) -> AttackOutcome {
    let words = arena.tool(&["forking", &arena.leases(Who::Root).display().to_string()]);
    let mut command = arena.command(Who::Root, &words[0]);
    command.args(&words[1..]);
    let ran = arena.start(command)?.end(35)?;
    match ran.out.lines().last().and_then(|line| line.parse::<u64>().ok()) {
        Some(millis) if ran.code == 0 && millis < 2000 => {
            held(format!("granted {millis} ms after the release"))
        }
        _ => broken(format!("exit {}, {} ms: {}", ran.code, ran.out, ran.err)),
    }
}

fn panicking(arena: &Arena) -> AttackOutcome {
    let words = arena.tool(&["panicking", &arena.leases(Who::Root).display().to_string()]);
    let mut command = arena.command(Who::Root, &words[0]);
    command.args(&words[1..]);
    let ran = arena.ran(command)?;
    let said = ran.err.lines().last().unwrap_or_default().to_owned();
    if ran.code == 0 { held("the process still holds its other lease") } else { broken(said) }
}

/// The holder stamps only what a check confirms, so a stamp after the stop proves that it believes again.
fn stopped(arena: &Arena) -> AttackOutcome {
    let url = format!("file://{}", arena.leases(Who::Root).display());
    let acts = arena.acts().display().to_string();
    let words = arena.tool(&["hold", &url, "3000", "1000", &acts, "a", "30000"]);
    let mut command = arena.command(Who::Root, &words[0]);
    command.args(&words[1..]);
    let holder = arena.holder(command, "a")?;
    send(holder.number, Signal::STOP)?;
    let successor =
        arena.holder(arena.run(Who::Root, &["--ttl", "3s", "--wait", "9s"], &arena.act("b", 1500)), "b")?;
    send(holder.number, Signal::CONT)?;
    let (first, second) = (holder.end(10)?, successor.end(10)?);
    arena.no_overlap()?;
    if first.code != 0 && second.code == 0 {
        held(format!("the continued holder does not believe any more: {}", first.err))
    } else {
        broken(format!("the holder exited with {}, the successor with {}", first.code, second.code))
    }
}

const NOTHING_REVIVES: &str = "a holder never believes again after its lease has run out";

const FORKED: &str = "a forked child that connects again works, and does not disturb its parent";

const ONE_CALL: &str =
    "a panic in the store fails one call, and leaves the other leases of the process alone";
