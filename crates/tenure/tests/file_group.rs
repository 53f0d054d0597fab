//! A store that the users of a group share: its rights, what one member can do to another, and what no member can.

mod file_support;

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure::ErrorKind;
use tenure::store::File;
use tenure_store::Expect;
use tenure_testkit::{quota, wait_until};

use file_support::{Puppet, SHARED, block_on, key, look, shell, skipped, write};

const ANN: u32 = 64_001;
const BEN: u32 = 64_002;
/// A user who is not in the group.
const EVE: u32 = 64_003;
const GROUP: u32 = 64_100;

/// A directory of root, and one in it that a group may share.
struct Shared {
    above: PathBuf,
    leases: PathBuf,
    program: PathBuf,
}

impl Shared {
    /// `None` if this process cannot act as several users.
    fn new(name: &str) -> Option<Self> {
        let shared = Self::without_directory(name)?;
        std::fs::create_dir(&shared.leases).unwrap();
        chown(&shared.leases, None, Some(GROUP)).unwrap();
        set_mode(&shared.leases, 0o2770);
        Some(shared)
    }

    fn without_directory(name: &str) -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        if !rustix::process::geteuid().is_root() {
            skipped("only root can act as several users");
            return None;
        }
        if !shell("setpriv --reuid 64001 --regid 64001 --clear-groups true") {
            skipped("no setpriv here, or it may not change users: install util-linux");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // The directory of the build may not be accessible to other users.
        let above = std::env::temp_dir().join(format!("tenure-group-{name}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&above);
        std::fs::create_dir(&above).unwrap();
        set_mode(&above, 0o755);
        let (leases, program) = (above.join("leases"), above.join("program"));
        let built = std::env::current_exe().unwrap();
        std::fs::hard_link(&built, &program)
            .or_else(|_| std::fs::copy(&built, &program).map(drop))
            .expect("the test program can be reached by other users");
        Some(Self { above, leases, program })
    }

    /// A program of a user, who is in the group unless it is Eve.
    fn command(user: u32, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}")]);
        if user == EVE {
            command.arg("--clear-groups");
        } else {
            command.arg(format!("--groups={GROUP}"));
        }
        command.arg("--").arg(program.as_ref()).current_dir("/");
        command
    }

    fn puppet(&self, user: u32) -> Puppet {
        self.try_puppet(user).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// A process of the user that has the store open; the error is that of the store.
    fn try_puppet(&self, user: u32) -> Result<Puppet, String> {
        let mut command = Self::command(user, "sh");
        command.args(["-c", "umask 077 && exec \"$0\" \"$@\""]).arg(&self.program).env(SHARED, "1");
        Puppet::try_start_with(command, &self.leases)
    }

    /// Runs a script as the user, in the directory of the store.
    fn script(&self, user: u32, script: &str) -> bool {
        let script = format!("cd {} && {script}", self.leases.display());
        Self::command(user, "sh").args(["-c", &script]).status().unwrap().success()
    }

    /// The store through this process, which is root's.
    fn store(&self) -> File {
        File::builder().share_with_group().open(&self.leases).unwrap()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.above);
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[track_caller]
fn says(sentence: &str, words: &[&str]) {
    for word in words {
        assert!(sentence.contains(word), "{word:?} is missing: {sentence}");
    }
}

/// Runs as a process of another user.
#[test]
#[ignore = "a program of the tests in this file"]
fn puppet() {
    file_support::be_a_puppet();
}

// ── rights ──────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn two_users_of_a_group_write_one_store_whatever_their_umask() {
    let Some(shared) = Shared::new("both") else { return };
    let (mut ann, mut ben) = (shared.puppet(ANN), shared.puppet(BEN));
    let applied = ann.put("x", "ann", "-").unwrap();
    let first = applied.strip_prefix("applied ").unwrap_or_else(|| panic!("{applied}"));
    let applied = ben.put("x", "ben", first).unwrap();
    says(&applied, &["applied "]);
    assert_eq!(ann.put("x", "ann", first).unwrap(), "conflict");
    says(&ann.get("x").unwrap(), &[" ben ", "age Some"]);
    // Root is a user like any other, and gives its files to the group as well.
    block_on(write(&shared.store(), &key("root"), "value", Expect::Absent));
    says(&ann.get("root").unwrap(), &[" value "]);
    says(&ben.put("mine", "ben", "-").unwrap(), &["applied "]);
    assert_eq!(mode(&shared.leases), 0o2770);
    let mut owners = Vec::new();
    for file in std::fs::read_dir(&shared.leases).unwrap().map(|file| file.unwrap()) {
        let status = file.metadata().unwrap();
        assert_eq!((mode(&file.path()), status.gid()), (0o660, GROUP), "{file:?}");
        owners.push(status.uid());
    }
    assert!([0, ANN, BEN].iter().all(|user| owners.contains(user)), "{owners:?}");
}

#[test]
fn of_two_users_who_create_one_key_at_the_same_moment_one_succeeds_and_none_is_denied() {
    let Some(shared) = Shared::new("race") else { return };
    let mut racers = [shared.puppet(ANN), shared.puppet(BEN)];
    for round in 0..quota(200, 2_000) {
        let name = format!("k{round}");
        // Both create its lock file, too. A file that is not yet for the group would deny the slower one.
        for racer in &mut racers {
            racer.order_put(&name, "value", "-");
        }
        let mut answers = racers.each_mut().map(|racer| racer.answer().unwrap());
        answers.sort_unstable();
        assert!(answers[0].starts_with("applied ") && answers[1] == "conflict", "{name}: {answers:?}");
    }
    let lock = std::fs::read_dir(&shared.leases).unwrap().map(|file| file.unwrap());
    let left = lock.filter(|file| file.path().extension().is_some_and(|ending| ending == "tmp")).count();
    assert_eq!(left, 0, "no temporary file is left");
}

#[test]
fn a_missing_directory_is_created_for_the_group_of_its_creator() {
    let Some(shared) = Shared::without_directory("made") else { return };
    let refused = shared.try_puppet(ANN).err().expect("only root may create entries above");
    says(&refused, &["does not exist", "install -d -m 2770 -g GROUP", "may not create it"]);
    let refused = File::builder().share_with_group().open(&shared.leases).unwrap_err().to_string();
    says(&refused, &["group of root", "install -d -m 2770 -g GROUP"]);
    let below = File::builder().share_with_group().open(shared.leases.join("below")).unwrap_err().to_string();
    says(&below, &["does not exist", "install -d -m 755"]);
    set_mode(&shared.above, 0o1777);
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={ANN}"), format!("--regid={GROUP}"), "--clear-groups".to_owned()]);
    command.args(["sh", "-c", "umask 077 && exec \"$0\" \"$@\""]).arg(&shared.program);
    let mut ann = Puppet::start_with(
        {
            command.env(SHARED, "1").current_dir("/");
            command
        },
        &shared.leases,
    );
    says(&ann.put("x", "ann", "-").unwrap(), &["applied "]);
    let made = std::fs::metadata(&shared.leases).unwrap();
    assert_eq!((mode(&shared.leases), made.uid(), made.gid()), (0o2770, ANN, GROUP));
    let names: Vec<_> =
        std::fs::read_dir(&shared.above).unwrap().map(|name| name.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
    says(&shared.puppet(BEN).get("x").unwrap(), &[" ann "]);
    // Any user could have created a directory of that name here first.
    let refused = shared.try_puppet(EVE).err().expect("it may be a stranger's");
    says(&refused, &["not safe for leases", "user 64001", "group 64100"]);
}

#[test]
fn a_user_outside_the_group_is_told_which_group_is_missing() {
    let Some(shared) = Shared::new("stranger") else { return };
    let refused = shared.try_puppet(EVE).err().expect("Eve is not in the group");
    says(&refused, &["user 64003 may not write to", "group 64100", "usermod -aG", "log in again"]);
    assert_eq!(std::fs::read_dir(&shared.leases).unwrap().count(), 0);
}

#[test]
fn a_store_of_one_user_is_refused_with_the_commands_that_share_it() {
    let Some(shared) = Shared::without_directory("convert") else { return };
    let own = File::open(&shared.leases).unwrap();
    block_on(write(&own, &key("x"), "before", Expect::Absent));
    drop(own);
    let error = File::builder().share_with_group().open(&shared.leases).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let url = format!("{}?share=group", File::url_of(&shared.leases));
    says(&error.to_string(), &["not shared with a group", "mode is 0700", &url, "stop its programs"]);
    // Half of the steps are not enough.
    chown(&shared.leases, None, Some(GROUP)).unwrap();
    set_mode(&shared.leases, 0o2770);
    let half = File::builder().share_with_group().open(&shared.leases).unwrap_err().to_string();
    says(&half, &["tenure.mark has mode 0600 and group 0", "chmod 660"]);
    set_mode(&shared.leases, 0o700);
    let sentence = error.to_string();
    let steps = sentence.split_once("stop its programs; ").unwrap().1.split_once("; then name").unwrap().0;
    assert!(shell(&steps.replace("GROUP", &GROUP.to_string())), "{steps}");
    says(&shared.puppet(BEN).get("x").unwrap(), &[" before "]);
    // From now on it is opened as what it is.
    for builder in [File::builder(), File::builder().accept_foreign_owner().accept_writable_by_others()] {
        let error = builder.clone().open(&shared.leases).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        says(&error.to_string(), &["shared with group 64100", &url]);
        assert_eq!(builder.open_to_read(&shared.leases).unwrap_err().to_string(), error.to_string());
    }
    assert_eq!(shared.store().to_string(), url);
}

#[test]
fn two_users_without_a_group_are_told_at_once_that_they_cannot_share_and_how_they_could() {
    let Some(shared) = Shared::without_directory("one") else { return };
    set_mode(&shared.above, 0o1777);
    let mine = |user| Puppet::try_start_with(Shared::command(user, &shared.program), &shared.leases);
    drop(mine(ANN).unwrap());
    let refused = mine(BEN).err().expect("it is Ann's");
    let url = format!("{}?share=group", File::url_of(&shared.leases));
    says(
        &refused,
        &["belongs to user 64001", "this is user 64002", "two users cannot share it", "chmod 2770", &url],
    );
}

#[test]
fn directories_that_are_not_set_up_for_their_group_are_refused() {
    let Some(shared) = Shared::new("setup") else { return };
    shared.store();
    for wrong in [0o770, 0o2750, 0o2700, 0o2777, 0o3770, 0o2772] {
        set_mode(&shared.leases, wrong);
        let error = File::builder().share_with_group().open(&shared.leases).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{wrong:o}");
        says(&error.to_string(), &[&format!("mode is {wrong:04o}"), "chmod 2770"]);
    }
    set_mode(&shared.leases, 0o2775);
    shared.store();
    // A member who owns a directory above could replace the store for the others.
    set_mode(&shared.leases, 0o2770);
    chown(&shared.above, Some(ANN), None).unwrap();
    for user in [ANN, BEN] {
        says(&shared.try_puppet(user).err().unwrap(), &["belongs to user 64001", "accept_foreign_owner"]);
    }
}

#[test]
fn a_file_that_does_not_get_the_group_is_not_published() {
    let Some(shared) = Shared::new("no-setgid") else { return };
    let mut ann = shared.puppet(ANN);
    says(&ann.put("x", "one", "-").unwrap(), &["applied "]);
    // As on a file system that ignores the setgid bit: new files get the group of their creator.
    set_mode(&shared.leases, 0o770);
    let refused = ann.put("y", "two", "-").unwrap();
    says(&refused, &["refused ", "not supported"]);
    set_mode(&shared.leases, 0o2770);
    says(&ann.get("y").unwrap(), &["nothing"]);
    says(&ann.put("y", "two", "-").unwrap(), &["applied "]);
    for file in std::fs::read_dir(&shared.leases).unwrap().map(|file| file.unwrap()) {
        assert_eq!(file.metadata().unwrap().gid(), GROUP, "{file:?}");
    }
}

#[test]
fn a_group_shares_no_store_on_a_file_system_that_is_not_local() {
    let named = File::builder().accept_file_system("proc").share_with_group();
    let error = named.open("/proc/tenure").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    says(&error.to_string(), &["is on proc", "only on a local file system"]);
}

// ── other members ───────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn no_member_can_make_another_write_outside_the_directory_or_wait_for_ever() {
    let Some(shared) = Shared::new("planted") else { return };
    let victim = shared.above.join("victim");
    std::fs::write(&victim, "precious").unwrap();
    chown(&victim, Some(BEN), Some(GROUP)).unwrap();
    set_mode(&victim, 0o600);
    let (leases, file) = (shared.leases.display(), victim.display());
    let mut ben = shared.puppet(BEN);
    let planted = [
        ("symbolic link", format!("ln -s {file}")),
        ("dangling link", format!("ln -s {}/new", shared.above.display())),
        // By root: `fs.protected_hardlinks` may allow it to every user.
        ("hard link", format!("ln {file}")),
        ("fifo", "mkfifo".to_owned()),
        ("directory", "mkdir".to_owned()),
        ("device", String::new()),
        ("socket", String::new()),
    ];
    for (what, plant) in &planted {
        for (number, name) in ["x.entry", "x.lock", "tenure.mark", "tenure.tried"].iter().enumerate() {
            let case = format!("a {what} as {name}");
            let path = shared.leases.join(name);
            assert!(shell(&format!("mv {leases}/{name} {leases}/../kept 2>/dev/null; true")));
            let is_planted = match *what {
                "device" => shell(&format!("mknod {leases}/{name} c 1 3")),
                "socket" => UnixListener::bind(&path).is_ok(),
                _ => shell(&format!("{plant} {leases}/{name}")),
            };
            if !is_planted {
                skipped(&format!("{case} cannot be created here"));
                assert!(shell(&format!("mv {leases}/../kept {leases}/{name} 2>/dev/null; true")));
                continue;
            }
            // Open already, and opened anew. An answer is enough: the puppet waits at most half a minute.
            let said = ben.put("x", &format!("value-{number}"), "-").unwrap();
            let read = ben.get("x").unwrap();
            match shared.try_puppet(BEN) {
                Ok(mut anew) => drop(anew.put("x", "anew", "-").unwrap()),
                Err(refused) => says(&refused, &["tenure.mark"]),
            }
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "{case}: {said}; {read}");
            assert!(!shared.above.join("new").exists(), "{case}: {said}");
            if *name == "x.lock" || *name == "tenure.mark" {
                says(&said, &["refused "]);
            }
            if *name == "x.entry" {
                says(&read, &["failed "]);
            }
            assert!(shell(&format!(
                "rm -rf {leases}/{name}; mv {leases}/../kept {leases}/{name} 2>/dev/null; true"
            )));
            assert!(shell(&format!("rm -f {leases}/x.entry {leases}/x.lock")));
        }
    }
    says(&ben.put("x", "after", "-").unwrap(), &["applied "]);
}

#[test]
fn a_file_of_another_user_that_a_member_moves_into_the_store_is_not_written_to() {
    let Some(shared) = Shared::new("moved") else { return };
    let mut ben = shared.puppet(BEN);
    says(&ben.put("x", "one", "-").unwrap(), &["applied "]);
    let lock = shared.leases.join("y.lock");
    std::fs::write(&lock, "precious").unwrap();
    chown(&lock, Some(BEN), Some(GROUP)).unwrap();
    // Ann may not write to it, but where it was, she may have had the right to move it.
    set_mode(&lock, 0o640);
    says(&ben.put("y", "value", "-").unwrap(), &["refused ", "y.lock", "it is not empty"]);
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "precious");
    // A mark in every other respect.
    let (mark, moved) = (shared.leases.join("tenure.mark"), shared.leases.join("moved.tmp"));
    std::fs::copy(&mark, &moved).unwrap();
    chown(&moved, Some(BEN), Some(GROUP)).unwrap();
    set_mode(&moved, 0o640);
    let before = std::fs::read(&moved).unwrap();
    std::fs::rename(&moved, &mark).unwrap();
    says(&ben.put("z", "value", "-").unwrap(), &["refused ", "tenure.mark", "mode 0640"]);
    assert_eq!(std::fs::read(&mark).unwrap(), before);
}

#[test]
fn a_record_that_a_member_truncates_is_refused_and_the_others_are_not() {
    let Some(shared) = Shared::new("truncated") else { return };
    let (mut ann, mut ben) = (shared.puppet(ANN), shared.puppet(BEN));
    for name in ["empty", "cut", "whole"] {
        says(&ben.put(name, "value", "-").unwrap(), &["applied "]);
    }
    assert!(shared.script(ANN, ": > empty.entry && truncate -s 40 cut.entry"));
    for name in ["empty", "cut"] {
        for puppet in [&mut ann, &mut ben] {
            says(&puppet.get(name).unwrap(), &["failed ", "is not a Tenure entry", "move it away"]);
            says(&puppet.put(name, "new", "-").unwrap(), &["refused ", "was not overwritten"]);
        }
    }
    assert_eq!(
        std::fs::metadata(shared.leases.join("cut.entry")).unwrap().len(),
        40,
        "it stays for inspection"
    );
    says(&ben.get("whole").unwrap(), &[" value "]);
    // A mark without a time is replaced by a process that knows the time, and refused by one that does not.
    assert!(shared.script(ANN, ": > tenure.mark"));
    says(&shared.try_puppet(ANN).err().unwrap(), &["tenure.mark", "it is empty", "move the file away"]);
    says(&ben.put("next", "value", "-").unwrap(), &["applied "]);
    says(&shared.puppet(ANN).get("next").unwrap(), &[" value "]);
    assert_eq!(mode(&shared.leases.join("tenure.mark")), 0o660);
}

/// A process of the user that has locked the lock file of `x`.
fn locker(shared: &Shared, user: u32) -> Child {
    let lock = shared.leases.join("x.lock");
    let mut command = Shared::command(user, "flock");
    let child =
        command.arg(lock).args(["sleep", "1000"]).stdin(Stdio::null()).process_group(0).spawn().unwrap();
    let number = child.id();
    wait_until("it has the lock", || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains(&format!(" {number} ")))
    });
    child
}

fn end_group(mut child: Child) {
    assert!(shell(&format!("kill -KILL -{}", child.id())));
    child.wait().unwrap();
}

#[test]
fn the_lock_of_a_stopped_member_whom_proc_hides_is_not_replaced() {
    if !shell("flock --version > /dev/null") {
        return skipped("no flock here: install util-linux");
    }
    let Some(shared) = Shared::new("hidden") else { return };
    let mut hidden = Command::new("unshare");
    let script = format!(
        "mount --make-rprivate / && mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid={BEN} --regid={BEN} \
         --groups={GROUP} -- \"$0\" \"$@\""
    );
    hidden.args(["--mount", "sh", "-c", &script]).arg(&shared.program).env(SHARED, "1").current_dir("/");
    if !shell("unshare --mount sh -c 'mount --make-rprivate / && mount -t proc -o hidepid=2 proc /proc'") {
        return skipped("root may not mount /proc here");
    }
    let mut ben = Puppet::start_with(hidden, &shared.leases);
    let applied = ben.put("x", "one", "-").unwrap();
    let first = applied.strip_prefix("applied ").unwrap().to_owned();
    let ann = locker(&shared, ANN);
    assert!(shell(&format!("kill -STOP {}", ann.id())));
    wait_until("it is stopped", || tenure_testkit::state_of(ann.id() as i32) == Some('T'));
    // Ben cannot see whether she is stopped, so the lock counts as that of a running process.
    says(&ben.put("x", "two", &first).unwrap(), &["refused ", "x.lock was locked", "fuser -v"]);
    says(&ben.put("y", "other", "-").unwrap(), &["applied "]);
    end_group(ann);
    says(&ben.put("x", "two", &first).unwrap(), &["applied "]);
}

#[test]
fn the_lock_of_a_stopped_member_is_replaced_and_that_of_a_running_one_is_named() {
    if !shell("flock --version > /dev/null") {
        return skipped("no flock here: install util-linux");
    }
    let Some(shared) = Shared::new("stopped") else { return };
    let mut ben = shared.puppet(BEN);
    let applied = ben.put("x", "one", "-").unwrap();
    let first = applied.strip_prefix("applied ").unwrap().to_owned();
    let ann = locker(&shared, ANN);
    let refused = ben.put("x", "two", &first).unwrap();
    says(&refused, &["refused ", "x.lock was locked", &format!("process {} of user 64001", ann.id())]);
    says(&ben.put("y", "other", "-").unwrap(), &["applied "]);
    assert!(shell(&format!("kill -STOP {}", ann.id())));
    wait_until("it is stopped", || tenure_testkit::state_of(ann.id() as i32) == Some('T'));
    says(&ben.put("x", "two", &first).unwrap(), &["applied "]);
    let lock = std::fs::metadata(shared.leases.join("x.lock")).unwrap();
    assert_eq!((lock.uid(), lock.gid(), lock.mode() & 0o777, lock.len()), (BEN, GROUP, 0o660, 0));
    end_group(ann);
    assert_eq!(block_on(look(&shared.store(), &key("x"))).unwrap().0, "two");
}
