//! The witness of a live holder: removed, read, replaced, or unlocked by CMD.

use crate::arena::{Arena, Who};
use crate::attack::Attack;
use crate::shell::shell;
use crate::verdict::{AttackOutcome, broken, held};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("witness/it is removed while held", NOT_DEAD, |arena| {
            done_to(arena, "rm $LEASES/*.witness")
        }),
        Attack::new("witness/a backup reads every file while held", NOT_DEAD, |arena| {
            done_to(arena, "tar cf /dev/null -C $LEASES .; cat $LEASES/* >/dev/null")
        }),
        Attack::new("witness/it is replaced by a copy while held", NOT_DEAD, |arena| {
            done_to(arena, "for w in $LEASES/*.witness; do cp -a $w $w.copy; mv $w.copy $w; done")
        }),
        Attack::new("witness/it gets a hard link while held", NOT_DEAD, |arena| {
            done_to(arena, "for w in $LEASES/*.witness; do ln $w ${w%/*}/../second; done")
        }),
        Attack::new("witness/CMD releases the locks that it inherited", NOT_DEAD, unlocked),
    ]
}

/// Runs the script on the files of the store. A contender must not mistake the live holder for dead.
fn done_to(arena: &Arena, script: &str) -> AttackOutcome {
    let _holder = arena.holder(arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 30_000)), "a")?;
    shell(&format!("LEASES={}; {script}", arena.leases(Who::Root).display()))?;
    contend(arena)
}

fn unlocked(arena: &Arena) -> AttackOutcome {
    let mut cmd = arena.tool(&["unlocking"]);
    cmd.extend(arena.act("a", 30_000));
    let _holder = arena.holder(arena.run(Who::Root, &["--ttl", "3s"], &cmd), "a")?;
    contend(arena)
}

fn contend(arena: &Arena) -> AttackOutcome {
    let ran = arena.ran(arena.run(Who::Root, &["--ttl", "3s", "--wait", "4s"], &arena.act("b", 300)))?;
    arena.no_overlap()?;
    if ran.code == 75 && !arena.living("a").is_empty() {
        held("a contender waited for 4 s, and the holder continued")
    } else {
        broken(format!("the contender exited with {}: {}", ran.code, ran.err))
    }
}

const NOT_DEAD: &str = "a live holder is not mistaken for dead: a contender in doubt about its witness waits";
