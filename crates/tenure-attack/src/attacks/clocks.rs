//! Wrong clocks, and a `tenure.mark` that is not a plain file.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use crate::arena::{Arena, KEY, Ran, Who};
use crate::attack::Attack;
use crate::shell::shell;
use crate::verdict::{AttackOutcome, broken, held, skipped};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "clocks/two time namespaces share a directory, 40 + 40 grants",
            NOT_AHEAD,
            two_time_namespaces,
        ),
        Attack::new("clocks/two boot ids share a directory, 40 + 40 grants", NOT_AHEAD, two_boot_ids),
        Attack::new("clocks/the clock was once in 2200, then the record is moved away", NEVER_BACK, in_2200),
        Attack::new("clocks/the boot id is empty", BAD_BOOT_ID, |arena| boot_id(arena, "")),
        Attack::new("clocks/the boot id is garbled", BAD_BOOT_ID, |arena| {
            boot_id(arena, "no boot id, \\377 at all")
        }),
        Attack::new("clocks/tenure.mark is a hard link to a victim's file", PLAIN_MARK, |arena| {
            mark(arena, "ln victim $MARK")
        }),
        Attack::new("clocks/tenure.mark is a symbolic link to a victim's file", PLAIN_MARK, |arena| {
            mark(arena, "ln -s $PWD/victim $MARK")
        }),
        Attack::new("clocks/tenure.mark is a fifo", PLAIN_MARK, |arena| {
            mark(arena, "mkfifo $MARK; chmod 666 $MARK")
        }),
        Attack::new("clocks/tenure.mark is a directory", PLAIN_MARK, |arena| mark(arena, "mkdir $MARK")),
        Attack::new("clocks/tenure.mark belongs to a third user", PLAIN_MARK, |arena| {
            mark(arena, "cp victim $MARK; chown 64002 $MARK; ln $MARK other")
        }),
    ]
}

fn two_time_namespaces(arena: &Arena) -> AttackOutcome {
    let mut other = Command::new("unshare");
    other.args(["--time", "--boottime", "86400", "true"]);
    if arena.ran(other)?.code != 0 {
        return skipped("the kernel has no time namespaces");
    }
    alternate(arena, |run| {
        let mut command = arena.command(Who::Root, "unshare");
        command.args(["--time", "--boottime", "86400"]).arg(run.get_program()).args(run.get_args());
        command
    })
}

fn two_boot_ids(arena: &Arena) -> AttackOutcome {
    let id = arena.path("boot_id");
    fs::write(&id, "01234567-89ab-cdef-0123-456789abcdef\n").map_err(|error| error.to_string())?;
    alternate(arena, |run| {
        let mut command = arena.command(Who::Root, "unshare");
        let script = format!("mount --bind {} /proc/sys/kernel/random/boot_id; exec \"$@\"", id.display());
        command.args(["--mount", "sh", "-ec", &script, "sh"]).arg(run.get_program()).args(run.get_args());
        command
    })
}

/// Takes the lease in two clock domains in turn, and compares the last token with the wall clock.
fn alternate(arena: &Arena, elsewhere: impl Fn(&Command) -> Command) -> AttackOutcome {
    let run = || {
        arena.run(
            Who::Root,
            &["--no-wait"],
            &["sh".to_owned(), "-c".to_owned(), "echo $TENURE_TOKEN".to_owned()],
        )
    };
    // One grant with a clock that is a second ahead puts the mark ahead of the real clock.
    let mut last = token_of(&acquire_at(arena, wall_micros() / 1000 + 1000)?)?;
    for round in 0..40 {
        for command in [run(), elsewhere(&run())] {
            let token = token_of(&arena.ran(command)?)?;
            if token <= last {
                return broken(format!("token {token} followed {last} in round {round}"));
            }
            last = token;
        }
    }
    let ahead = last.saturating_sub(wall_micros()) as f64 / 1e6;
    let evidence = format!("the last of 80 tokens is {ahead:.1} s ahead of the clock");
    // One step of 20 s for each of the two domains, and one more.
    if ahead < 61.0 { held(evidence) } else { broken(evidence) }
}

/// A library holder takes the lease while its wall clock shows the year 2200. Then the record is moved away.
fn in_2200(arena: &Arena) -> AttackOutcome {
    let run = || {
        arena.run(
            Who::Root,
            &["--no-wait"],
            &["sh".to_owned(), "-c".to_owned(), "echo $TENURE_TOKEN".to_owned()],
        )
    };
    let before = token_of(&arena.ran(run())?)?;
    let then = acquire_at(arena, IN_2200)?;
    let highest = token_of(&then).map_or(before, |token| token.max(before));
    fs::rename(arena.leases(Who::Root).join(format!("{KEY}.entry")), arena.path("away"))
        .map_err(|error| error.to_string())?;
    let after = arena.ran(run())?;
    match token_of(&after) {
        Ok(token) if token > highest => {
            held(format!("token {before}, in 2200 {highest}, afterwards {token}"))
        }
        Ok(token) => broken(format!("the token went back from {highest} to {token}")),
        // A refusal with a message is safe too.
        Err(_) if matches!(after.code, 65 | 69 | 77) => {
            held(format!("refused with {}: {}", after.code, after.err))
        }
        Err(error) => broken(error),
    }
}

/// With an invalid boot id, a holder still keeps its lease, and a second contender does not get it.
fn boot_id(arena: &Arena, text: &str) -> AttackOutcome {
    let id = arena.path("boot_id");
    shell(&format!(
        "printf '{text}' >{}; mount --bind {} /proc/sys/kernel/random/boot_id",
        id.display(),
        id.display()
    ))?;
    let holder = arena.holder(arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 5000)), "a");
    let holder = match holder {
        Ok(holder) => holder,
        Err(error) if error.contains("panicked") => return broken(error),
        Err(error) => return held(format!("refused: {error}")),
    };
    let second = arena.ran(arena.run(Who::Root, &["--no-wait"], &arena.act("b", 100)))?;
    let first = holder.end(10)?;
    arena.no_overlap()?;
    if first.code == 0 && second.code == 75 {
        held("held past its ttl; a second run exited with 75")
    } else {
        broken(format!(
            "the holder exited with {}: {}; the second run with {}: {}",
            first.code, first.err, second.code, second.err
        ))
    }
}

/// Root opens the directory of another user, in which the script has replaced the mark.
fn mark(arena: &Arena, script: &str) -> AttackOutcome {
    let directory = arena.path("foreign");
    fs::create_dir(&directory).map_err(|error| error.to_string())?;
    arena.mode(&directory, 0o700)?;
    let victim = arena.path("victim");
    fs::write(&victim, VICTIM).map_err(|error| error.to_string())?;
    shell(&format!("cd {}; MARK={}/tenure.mark; {script}", arena.directory.display(), directory.display()))?;
    chown(&directory, Some(Who::User.number()), Some(Who::User.number()))
        .map_err(|error| error.to_string())?;
    let mut command = arena.run(Who::Root, &["--wait", "3s"], &["true".to_owned()]);
    command.env("TENURE_STORE", format!("file://{}?accept=foreign-owner", directory.display()));
    let ran = arena.start(command)?.end(8)?;
    let other = arena.path("other");
    let files = [&victim, &other];
    let changed = files
        .iter()
        .filter(|path| path.is_file())
        .any(|path| fs::read_to_string(path).is_ok_and(|text| text != VICTIM));
    if changed {
        return broken(format!("the victim's file was overwritten; exit {}", ran.code));
    }
    if ran.code == 0 {
        return broken("tenure used it as the mark");
    }
    held(format!("refused with {}: {}", ran.code, ran.err))
}

/// A library holder takes and releases the lease while its wall clock stands still at this time.
fn acquire_at(arena: &Arena, millis: u64) -> Result<Ran, String> {
    let directory = arena.leases(Who::Root).display().to_string();
    let words = arena.tool(&["at", &millis.to_string(), &directory]);
    let mut command = arena.command(Who::Root, &words[0]);
    command.args(&words[1..]);
    arena.ran(command)
}

fn wall_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

fn token_of(ran: &Ran) -> Result<u64, String> {
    ran.out.parse().map_err(|_| format!("no token; exit {}: {} {}", ran.code, ran.out, ran.err))
}

/// Start of the year 2200, in milliseconds since 1970.
const IN_2200: u64 = 7_258_118_400_000;

const VICTIM: &str = "only its owner may change this\n";

const NOT_AHEAD: &str =
    "tokens follow the clock: each clock domain that shares a directory pushes them ahead at most once";

const NEVER_BACK: &str = "tokens never go back, even after a deletion of the record and with a wrong clock";

const BAD_BOOT_ID: &str = "an invalid boot id does not cost a lease";

const PLAIN_MARK: &str =
    "Tenure opens files by bare names without following links, and overwrites no file of another user";
