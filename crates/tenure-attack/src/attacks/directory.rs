//! The directory of the store: removed, moved, mounted over, or writable by others.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::time::Duration;

use tenure_testkit::sleep_ms;

use crate::arena::{Arena, Who};
use crate::attack::Attack;
use crate::shell::shell;
use crate::stamps::boot_time;
use crate::verdict::{AttackOutcome, AttackVerdict, broken, held, known_limit};

pub(super) fn all() -> Vec<Attack> {
    let mut attacks = Vec::new();
    for ttl in ["15s", "1h"] {
        for (what, script) in [
            ("the entry is removed", "rm $LEASES/k.entry"),
            ("everything in it is removed", "rm -rf $LEASES/*"),
            ("it is removed", "rm -rf $LEASES"),
            ("it is moved", "mv $LEASES $LEASES.old"),
            ("it is moved and replaced by an empty one", "mv $LEASES $LEASES.old; mkdir -m 700 $LEASES"),
            (
                "it is replaced by a copy of itself",
                "cp -a $LEASES $LEASES.new; mv $LEASES $LEASES.old; mv $LEASES.new $LEASES",
            ),
            ("its parent is moved", "mv $HOME_ $HOME_.old; mkdir -m 755 $HOME_"),
            ("it is mounted over", "mount -t tmpfs -o mode=700 tmpfs $LEASES"),
            ("its parent is mounted over", "mount -t tmpfs -o mode=755 tmpfs $HOME_"),
        ] {
            let name = format!("directory/{what} while held, ttl {ttl}");
            attacks.push(Attack::new(name, LOST_AT_ONCE, move |arena| {
                gone(arena, Who::Root, ttl, AT_ONCE, script)
            }));
        }
    }
    attacks.extend([
        Attack::new(
            "directory/it is moved while held, with no inotify instance left, ttl 15s",
            LOST_AT_RENEWAL,
            gone_unwatched,
        ),
        Attack::new(
            "directory/an earlier copy of the entry is restored while held, ttl 1h",
            OUTSIDE,
            put_back,
        ),
        Attack::new("directory/a bind mount gives it a second path", ONE_DIRECTORY, bind_mount),
        Attack::new(
            "directory/it is on an overlay, and is also used through the upper layer",
            ONE_DIRECTORY,
            upper_layer,
        ),
        Attack::new("directory/its parent is writable by a group", NOT_OPENED, |arena| {
            refused(arena, 0, 0o775)
        }),
        Attack::new("directory/its parent belongs to uid 65534", NOT_OPENED, |arena| {
            refused(arena, 65_534, 0o755)
        }),
        Attack::new(
            "directory/its parent is sticky, writable by others, and belongs to another user",
            NOT_OPENED,
            |arena| refused(arena, Who::User.number(), 0o1777),
        ),
        Attack::new("directory/it is writable by a group", NOT_OPENED, group_writable),
        Attack::new("directory/it is a symbolic link of another user", NOT_FOLLOWED, link),
    ]);
    attacks
}

/// Runs the script on the directory of a live holder, starts a successor, and measures how long CMD still acts.
fn gone(arena: &Arena, who: Who, ttl: &str, limit: Duration, script: &str) -> AttackOutcome {
    let home = arena.home(who);
    let _holder = arena.holder(arena.run(who, &["--ttl", ttl], &arena.act("a", 30_000)), "a")?;
    let since = boot_time();
    shell(&format!("HOME_={}; LEASES={}; {script}", home.display(), arena.leases(who).display()))?;
    let ran = arena.ran(arena.run(who, &["--ttl", "3s", "--wait", "5s"], &arena.act("b", 200)))?;
    let successor = format!("the successor exited with {}", ran.code);
    match arena.stops("a", since, limit) {
        Ok(millis) => held(format!("CMD acted for {millis:.0} ms more; {successor}")),
        Err(error) => broken(format!("{error}; {successor} {}", ran.err)),
    }
}

/// An earlier copy of the entry replaces it. No kernel event distinguishes this from a renewal.
fn put_back(arena: &Arena) -> AttackOutcome {
    arena.ran(arena.run(Who::Root, &[], &["true".to_owned()]))?;
    let (entry, earlier) = (arena.leases(Who::Root).join("k.entry"), arena.path("earlier"));
    fs::copy(entry, &earlier).map_err(|error| error.to_string())?;
    let script = format!("cp {} $LEASES/k.tmp; mv $LEASES/k.tmp $LEASES/k.entry", earlier.display());
    match gone(arena, Who::Root, "1h", AT_ONCE, &script)? {
        AttackVerdict::Broken(evidence) => {
            known_limit(TIME_MODEL, "restored from a copy, while it is held", &evidence)
        }
        verdict => Ok(verdict),
    }
}

/// The kernel reports nothing, because the user has no inotify instance left. The next renewal detects the move.
fn gone_unwatched(arena: &Arena) -> AttackOutcome {
    let words = arena.tool(&["hog-inotify", "30000"]);
    let mut hog = arena.command(Who::User, &words[0]);
    hog.args(&words[1..]);
    let _hog = arena.start(hog)?;
    sleep_ms(300);
    gone(arena, Who::User, "15s", AT_RENEWAL, "mv $LEASES $LEASES.old")
}

/// A contender that reaches the same directory by another path must wait too.
fn bind_mount(arena: &Arena) -> AttackOutcome {
    let _holder = arena.holder(arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 30_000)), "a")?;
    let other = arena.path("other");
    shell(&format!("mkdir {0}; mount --bind {1} {0}", other.display(), arena.home(Who::Root).display()))?;
    contend(arena, &other.join("leases"))
}

/// The kernel keeps separate locks for the file in the overlay and the same file in its upper layer.
fn upper_layer(arena: &Arena) -> AttackOutcome {
    let at = arena.path("fs");
    let at = at.display();
    shell(&format!(
        "mkdir -p {at}/low {at}/u {at}/w {at}/m; \
         mount -t tmpfs tmpfs {at}/u; mkdir {at}/u/u {at}/u/w; \
         mount -t overlay overlay -o lowerdir={at}/low,upperdir={at}/u/u,workdir={at}/u/w {at}/m"
    ))?;
    let mut run = arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 30_000));
    run.env("TENURE_STORE", format!("file://{at}/m/leases"));
    let _holder = arena.holder(run, "a")?;
    match contend(arena, &arena.path("fs/u/u/leases")) {
        Err(overlap) => known_limit(
            "docs/concepts/witness.md",
            "must not be used through that layer's directory",
            &overlap,
        ),
        outcome => outcome,
    }
}

fn contend(arena: &Arena, directory: &Path) -> AttackOutcome {
    let mut contender = arena.run(Who::Root, &["--ttl", "3s", "--wait", "5s"], &arena.act("b", 300));
    contender.env("TENURE_STORE", format!("file://{}", directory.display()));
    let ran = arena.ran(contender)?;
    arena.no_overlap()?;
    if ran.code == 75 {
        held(ran.err)
    } else {
        broken(format!("the contender exited with {}: {}", ran.code, ran.err))
    }
}

fn refused(arena: &Arena, owner: u32, mode: u32) -> AttackOutcome {
    let parent = arena.path("shared");
    fs::create_dir(&parent).map_err(|error| error.to_string())?;
    chown(&parent, Some(owner), Some(Who::User.number())).map_err(|error| error.to_string())?;
    arena.mode(&parent, mode)?;
    let mut command = arena.run(Who::Root, &["--no-wait"], &["true".to_owned()]);
    command.env("TENURE_STORE", format!("file://{}/leases", parent.display()));
    is_refused(arena, command)
}

fn group_writable(arena: &Arena) -> AttackOutcome {
    let directory = arena.leases(Who::Root);
    fs::create_dir(&directory).map_err(|error| error.to_string())?;
    arena.mode(&directory, 0o770)?;
    is_refused(arena, arena.run(Who::Root, &["--no-wait"], &["true".to_owned()]))
}

fn link(arena: &Arena) -> AttackOutcome {
    let at = arena.directory.display();
    let user = Who::User.number();
    shell(&format!(
        "mkdir -m 1777 {at}/sticky; mkdir -m 700 {at}/target; ln -s {at}/target {at}/sticky/leases"
    ))?;
    shell(&format!("chown -h {user}:{user} {at}/sticky/leases"))?;
    let mut command = arena.run(Who::Root, &["--no-wait"], &["true".to_owned()]);
    command.env("TENURE_STORE", format!("file://{at}/sticky/leases"));
    let ran = arena.ran(command)?;
    if ran.code == 0 {
        broken("tenure followed the link")
    } else {
        held(format!("refused with {}: {}", ran.code, ran.err))
    }
}

fn is_refused(arena: &Arena, command: std::process::Command) -> AttackOutcome {
    let ran = arena.ran(command)?;
    if ran.code == 77 { held(ran.err) } else { broken(format!("it exited with {}: {}", ran.code, ran.err)) }
}

/// Shorter than the time to the next renewal at a ttl of 15 s, and enough for an actor that ignores TERM on a busy
/// machine.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A third of 15 s, plus one second for a busy machine.
const AT_RENEWAL: Duration = Duration::from_secs(6);

const LOST_AT_ONCE: &str =
    "a directory that is removed, moved or replaced is a definite loss: tenure run kills CMD at once";

const LOST_AT_RENEWAL: &str =
    "if the kernel reports nothing, the next renewal detects that the directory is missing";

const TIME_MODEL: &str = "docs/rfcs/0002-time-model.md";

const OUTSIDE: &str =
    "a record that is restored from a copy while it is held is outside S2: only fencing helps";

const ONE_DIRECTORY: &str =
    "reach: all processes that share this kernel and this directory, in any container";

const NOT_FOLLOWED: &str = "a path whose last component is a symbolic link is refused";

const NOT_OPENED: &str = "a directory that another user can write to, move or replace is refused (77)";
