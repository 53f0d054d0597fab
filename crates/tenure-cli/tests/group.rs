//! Several users of one machine share a store through a group: `file:///path?share=group`.

mod run_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use run_support::{PATIENCE, Process, Ran, World, said, skipped, sleep_ms, until};
use rustix::process::Signal;
use serde_json::Value;

const ANN: u32 = 64_011;
const BEN: u32 = 64_012;
/// A user who is not in the group.
const EVE: u32 = 64_013;
const GROUP: u32 = 64_110;

/// A world with a directory that a group shares, a copy of `tenure` that every user may run, and a home for each user.
struct GroupWorld(World);

impl GroupWorld {
    /// `None` if this process cannot act as several users.
    fn new(name: &str) -> Option<Self> {
        let world = Self::without_store(name)?;
        let leases = world.0.leases();
        fs::create_dir(&leases).unwrap();
        chown(&leases, None, Some(GROUP)).unwrap();
        fs::set_permissions(&leases, fs::Permissions::from_mode(0o2770)).unwrap();
        Some(world)
    }

    fn without_store(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("only root can act as several users");
            return None;
        }
        if !tenure_testkit::shell("setpriv --reuid 64011 --regid 64011 --clear-groups true") {
            skipped("no setpriv here, or it may not change users: install util-linux");
            return None;
        }
        // The directory of the build may not be accessible to other users.
        let world = World::under(&std::env::temp_dir(), name);
        fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(run_support::TENURE, world.path("tenure")).unwrap();
        for user in [ANN, BEN, EVE] {
            let home = world.path(&user.to_string());
            fs::create_dir(&home).unwrap();
            chown(&home, Some(user), Some(user)).unwrap();
        }
        Some(Self(world))
    }

    fn url(&self) -> String {
        format!("{}?share=group", self.0.store_url())
    }

    /// `tenure` as this user, on the shared store.
    fn tenure(&self, user: u32, words: &[&str]) -> Command {
        self.tenure_by(self.0.command("setpriv"), user, words)
    }

    /// The same, where `/proc` shows a user no process of another.
    fn hidden(&self, user: u32, words: &[&str]) -> Command {
        let mut unshare = self.0.command("unshare");
        let script = format!("{HIDE} && exec setpriv \"$@\"");
        unshare.args(["--mount", "sh", "-c", &script, "sh"]);
        self.tenure_by(unshare, user, words)
    }

    /// `command` is that of `setpriv`, without arguments.
    fn tenure_by(&self, mut command: Command, user: u32, words: &[&str]) -> Command {
        command.args([format!("--reuid={user}"), format!("--regid={user}")]);
        if user == EVE {
            command.arg("--clear-groups");
        } else {
            command.arg(format!("--groups={GROUP}"));
        }
        let home = self.0.path(&user.to_string());
        command.arg("--").arg(self.0.path("tenure")).args(words).env("TENURE_STORE", self.url());
        command.env("HOME", &home).env("XDG_STATE_HOME", &home).env("XDG_RUNTIME_DIR", &home);
        command
    }

    fn ran(&self, user: u32, words: &[&str]) -> Ran {
        self.0.ran(self.tenure(user, words))
    }

    fn json(&self, user: u32, words: &[&str]) -> Value {
        let ran = self.ran(user, words);
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_slice(&ran.out).unwrap()
    }

    /// The number of witnesses in the store.
    fn witnesses(&self) -> usize {
        let files = fs::read_dir(self.0.leases()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|ending| ending == "witness")).count()
    }

    /// Starts a run of Ann with a long ttl, and returns the process of its command.
    fn ann_runs(&self) -> (run_support::Started, Process) {
        let script = "echo $$ > 64011/pid; exec sleep 1000";
        let started = self.0.start(self.tenure(ANN, &["run", "x", "--ttl", "10m", "--", "sh", "-c", script]));
        (started, self.0.told_pid("64011/pid"))
    }
}

/// Hides the processes of other users, in a mount namespace.
const HIDE: &str = "mount --make-rprivate / && mount -t proc -o hidepid=2 proc /proc";

/// Kills the supervisor, the watchdog and the command of a run at once, so that none of them can release the lease.
fn kill_all(started: &run_support::Started, command: &Process) {
    let (supervisor, watchdog) = (started.process(), started.watchdog());
    for process in [&supervisor, &watchdog] {
        process.send(Signal::STOP);
    }
    for process in [&supervisor, &watchdog, command] {
        process.send(Signal::KILL);
    }
    for process in [&supervisor, &watchdog, command] {
        process.dies_within(PATIENCE);
    }
}

/// Starts Ben's run of the same lease, which must wait, kills Ann's, and waits until Ben's has ended.
fn ben_takes_over(world: &GroupWorld, ben: Command) {
    let (ann, command) = world.ann_runs();
    let mut ben = world.0.start(ben);
    until("Ben waits", PATIENCE, || (world.witnesses() == 2).then_some(()));
    sleep_ms(1_000);
    assert!(!ben.has_ended() && !world.0.exists("64012/ran") && !command.is_dead(), "{}", ben.err_so_far());
    kill_all(&ann, &command);
    let ben = ben.end_within(PATIENCE);
    assert_eq!(ben.code, 0, "{ben:?}");
    assert!(world.0.exists("64012/ran"), "far before the ttl of ten minutes");
}

const BEN_RUNS: [&str; 8] = ["run", "x", "--wait", "9m", "--", "sh", "-c", "echo > 64012/ran"];

#[test]
fn a_member_takes_over_at_once_after_the_death_of_another_and_not_before() {
    let Some(world) = GroupWorld::new("takeover") else { return };
    ben_takes_over(&world, world.tenure(BEN, &BEN_RUNS));
}

#[test]
fn a_member_whom_proc_shows_nothing_of_another_takes_over_at_once_and_not_before() {
    let Some(world) = GroupWorld::new("takeover-hidden") else { return };
    if !tenure_testkit::shell(&format!("unshare --mount sh -c '{HIDE}'")) {
        return skipped("root may not mount /proc here");
    }
    ben_takes_over(&world, world.hidden(BEN, &BEN_RUNS));
}

#[test]
fn a_command_of_another_member_that_outlives_its_guards_and_its_ttl_is_waited_for() {
    let Some(world) = GroupWorld::new("outlives") else { return };
    let script = "echo $$ > 64011/pid; exec sleep 1000";
    let words = ["run", "x", "--ttl", "5s", "--", "setpriv", "--pdeathsig", "clear", "sh", "-c", script];
    let ann = world.0.start(world.tenure(ANN, &words));
    let command = world.0.told_pid("64011/pid");
    let (supervisor, watchdog) = (ann.process(), ann.watchdog());
    for process in [&supervisor, &watchdog] {
        process.send(Signal::STOP);
    }
    for process in [&supervisor, &watchdog] {
        process.send(Signal::KILL);
    }
    let denied = world.ran(BEN, &["run", "x", "--wait", "9s", "--", "true"]);
    assert!(denied.code == 75 && !command.is_dead(), "{denied:?}");
    command.send(Signal::KILL);
    assert_eq!(world.ran(BEN, &["run", "x", "--wait", "60s", "--", "true"]).code, 0);
}

#[test]
fn a_witness_that_a_member_may_not_read_proves_no_death() {
    let Some(world) = GroupWorld::new("unreadable") else { return };
    let (ann, command) = world.ann_runs();
    let files = fs::read_dir(world.0.leases()).unwrap().map(|file| file.unwrap().path());
    let witness = files.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "witness"));
    let witness = witness.expect("Ann has a witness in the store");
    assert_eq!(fs::metadata(&witness).unwrap().permissions().mode() & 0o7777, 0o640);
    fs::set_permissions(&witness, fs::Permissions::from_mode(0o600)).unwrap();
    kill_all(&ann, &command);
    let ben = world.ran(BEN, &["run", "x", "--wait", "2s", "--", "true"]);
    said(&ben, 75, &["x"]);
    fs::set_permissions(&witness, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(world.ran(BEN, &["run", "x", "--wait", "8m", "--", "true"]).code, 0);
}

#[test]
fn children_and_handles_open_the_store_as_their_parent_did() {
    let Some(world) = GroupWorld::new("handles") else { return };
    let child = world.ran(ANN, &["run", "x", "--", "sh", "-c", "echo $TENURE_STORE"]);
    assert_eq!((child.code, child.text().trim()), (0, world.url().as_str()), "{child:?}");
    let handle = world.0.path("64011/handle");
    let file = handle.to_str().unwrap();
    let acquired = world.ran(ANN, &["acquire", "y", "--ttl", "10m", "--file", file]);
    assert_eq!(acquired.code, 0, "{acquired:?}");
    // The handle alone names the store, with its option.
    for words in [["renew", "--file", file], ["release", "--file", file]] {
        let mut command = world.tenure(ANN, &words);
        command.env_remove("TENURE_STORE");
        let ran = world.0.ran(command);
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    }
    // A run inside its own run is found by the directory of the store, whatever the options.
    let tenure = world.0.path("tenure");
    let nested = format!("{} --store '{}&accept=foreign-owner' run x -- true", tenure.display(), world.url());
    let nested = world.ran(ANN, &["run", "x", "--", "sh", "-c", &nested]);
    said(&nested, 64, &["held by the tenure run or hold that this command is part of"]);
}

#[test]
fn two_users_who_do_not_share_a_store_learn_how_they_can() {
    let Some(world) = GroupWorld::without_store("message") else { return };
    fs::set_permissions(world.0.path(""), fs::Permissions::from_mode(0o1777)).unwrap();
    let url = world.0.store_url();
    let plain = |user| {
        let mut command = world.tenure(user, &["run", "x", "--", "true"]);
        command.env("TENURE_STORE", &url);
        world.0.ran(command)
    };
    assert_eq!(plain(ANN).code, 0);
    let shared = world.url();
    let refused = plain(BEN);
    said(&refused, 77, &["belongs to user 64011", "two users cannot share it", "chmod 2770", &shared]);
    // The steps of the message, by an administrator.
    let steps = refused.err.split_once("stop its programs; ").unwrap().1.split_once("; then name").unwrap().0;
    assert!(tenure_testkit::shell(&steps.replace("GROUP", &GROUP.to_string())), "{steps}");
    for user in [ANN, BEN] {
        assert_eq!(world.ran(user, &["run", "x", "--", "true"]).code, 0);
        said(&plain(user), 77, &["is shared with group 64110", &shared]);
    }
    said(&world.ran(EVE, &["run", "x", "--", "true"]), 77, &["this process is not in its group 64110"]);
}

// ── users who may only read ─────────────────────────────────────────────────────────────────────────────────────────

/// The names, sizes and times of all files of the store.
fn content(world: &GroupWorld) -> String {
    let list =
        Command::new("ls").args(["-lA", "--time-style=full-iso"]).arg(world.0.leases()).output().unwrap();
    String::from_utf8(list.stdout).unwrap()
}

#[track_caller]
fn sees_that_ann_holds(world: &GroupWorld, user: u32, url: &str) {
    let status = world.json(user, &["--store", url, "status", "x", "--json"]);
    assert_eq!(status["state"], "held", "{status}");
    let list = world.json(user, &["--store", url, "ls", "--json"]);
    assert_eq!(list["leases"][0]["name"], "x", "{list}");
}

#[test]
fn a_member_on_a_read_only_mount_sees_the_leases_and_changes_nothing() {
    let Some(world) = GroupWorld::new("read-only") else { return };
    let (_ann, _command) = world.ann_runs();
    let view = world.0.path("view");
    fs::create_dir(&view).unwrap();
    let (leases, shown) = (world.0.leases(), view.display());
    let mount = format!("mount --bind {} {shown} && mount -o remount,bind,ro {shown}", leases.display());
    if !tenure_testkit::shell(&mount) {
        return skipped("root may not mount here");
    }
    let before = content(&world);
    let url = format!("file://{shown}?share=group");
    let result = std::panic::catch_unwind(|| {
        sees_that_ann_holds(&world, BEN, &url);
        let refused = world.ran(BEN, &["--store", &url, "run", "y", "--", "true"]);
        said(&refused, 69, &["Read-only file system"]);
    });
    assert!(tenure_testkit::shell(&format!("umount {shown}")));
    result.unwrap();
    assert_eq!(content(&world), before);
}

#[test]
fn a_user_who_may_only_read_sees_the_leases_and_one_who_may_not_learns_which_right_is_missing() {
    let Some(world) = GroupWorld::new("monitor") else { return };
    let (_ann, _command) = world.ann_runs();
    let url = world.url();
    said(&world.ran(EVE, &["ls"]), 69, &["user 64013 may not read", "group 64110", "usermod -aG"]);
    let opened = format!("cd {} && chmod 2775 . && chmod o+r *", world.0.leases().display());
    assert!(tenure_testkit::shell(&opened));
    let before = content(&world);
    sees_that_ann_holds(&world, EVE, &url);
    said(&world.ran(EVE, &["run", "y", "--", "true"]), 69, &["may not write to", "group 64110"]);
    assert_eq!(content(&world), before);
    let closed = format!("chmod o-r {}/x.entry", world.0.leases().display());
    assert!(tenure_testkit::shell(&closed));
    let refused = world.ran(EVE, &["status", "x"]);
    said(&refused, 69, &["x.entry: Permission denied", "permission to read it"]);
}

/// Lets a user read the directory and the files that are created in it, by an access list. `false` if the file system
/// has none.
fn let_read(world: &GroupWorld, user: u32) -> bool {
    const NOBODY: u32 = u32::MAX;
    // Owner, user, group, mask, others; see `acl(5)` for the rights and `linux/posix_acl_xattr.h` for the form.
    let entries = [(1, 7, NOBODY), (2, 5, user), (4, 7, NOBODY), (0x10, 7, NOBODY), (0x20, 0, NOBODY)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend([u16::to_le_bytes(tag), u16::to_le_bytes(rights)].concat());
        list.extend(u32::to_le_bytes(id));
    }
    ["system.posix_acl_access", "system.posix_acl_default"].iter().all(|name| {
        rustix::fs::setxattr(world.0.leases(), *name, &list, rustix::fs::XattrFlags::empty()).is_ok()
    })
}

#[test]
fn a_user_whom_an_access_list_lets_read_sees_every_new_lease() {
    let Some(world) = GroupWorld::new("access-list") else { return };
    if !let_read(&world, EVE) {
        return skipped("the temporary directory has no access lists");
    }
    let (_ann, _command) = world.ann_runs();
    assert_eq!(world.ran(BEN, &["run", "y", "--", "true"]).code, 0);
    sees_that_ann_holds(&world, EVE, &world.url());
    said(&world.ran(EVE, &["run", "y", "--", "true"]), 69, &["may not write to", "group 64110"]);
}

#[test]
fn the_store_of_root_can_be_read_by_a_user_whom_its_files_allow_it() {
    let Some(world) = GroupWorld::without_store("root") else { return };
    assert_eq!(world.0.ran(world.0.run(&["x", "--", "true"])).code, 0);
    let url = world.0.store_url();
    let refused = world.ran(EVE, &["--store", &url, "ls"]);
    said(&refused, 69, &["cannot open", "Permission denied", "permission to read it"]);
    let opened = format!("chmod 755 {0} && chmod 644 {0}/*", world.0.leases().display());
    assert!(tenure_testkit::shell(&opened));
    let list = world.json(EVE, &["--store", &url, "ls", "--json"]);
    assert_eq!(list["leases"][0]["name"], "x", "{list}");
    let refused = world.ran(EVE, &["--store", &url, "run", "x", "--", "true"]);
    said(&refused, 77, &["belongs to user 0", "this is user 64013"]);
}
