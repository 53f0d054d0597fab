//! Directories that the store opens, directories that it refuses, and their contents.

mod file_support;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure::store::File;
use tenure::{Error, ErrorKind};
use tenure_store::{Expect, Put, Reach, Store, StoreClock};

use file_support::{DIRECTORY, Scratch, Strace, block_on, key, look, shell, write};

fn refused(opened: Result<File, Error>, kind: ErrorKind, words: &[&str]) {
    let error = opened.expect_err("it should have been refused");
    println!("{error}");
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is missing: {error}");
    }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        file_support::skipped("only root can give a directory away or mount a file system");
    }
    root
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_missing_directory_is_created_for_its_user_alone_with_its_parents() {
    let scratch = Scratch::new("made");
    let path = scratch.0.join("state/tenure");
    let store = File::open(&path).unwrap();
    assert_eq!(store.to_string(), format!("file://{}", path.display()));
    block_on(write(&store, &key("a/b"), "value", Expect::Absent));
    for made in [&scratch.0, &scratch.0.join("state"), &path] {
        assert_eq!(mode(made), 0o700, "{}", made.display());
    }
    let files: Vec<_> = std::fs::read_dir(&path).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
    assert_eq!(store.path_of(&key("a/b")), path.join("a+b.entry"));
}

#[test]
fn a_directory_promises_ages_and_hints_on_one_machine() {
    let promises = Scratch::new("promises").store().guarantees();
    assert_eq!(promises.missing_for_leases(), Vec::<&str>::new());
    assert_eq!((promises.reach, promises.clock, promises.watch), (Reach::Machine, StoreClock::Ages, true));
}

#[test]
fn a_directory_with_other_files_is_refused_and_unchanged() {
    let scratch = Scratch::new("other");
    std::fs::create_dir(&scratch.0).unwrap();
    std::fs::write(scratch.0.join("notes.txt"), "mine").unwrap();
    refused(File::open(&scratch.0), ErrorKind::Invalid, &["not empty", "notes.txt", "/tenure"]);
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 1);
    // A note in the directory does not stop it from being a store.
    let store = File::open(scratch.0.join("tenure")).unwrap();
    std::fs::write(store.path().join("notes.txt"), "mine").unwrap();
    File::open(store.path()).unwrap();
}

#[test]
fn a_store_that_was_restored_without_its_mark_can_be_opened() {
    let scratch = Scratch::new("no-mark");
    block_on(write(&scratch.store(), &key("k"), "value", Expect::Absent));
    std::fs::remove_file(scratch.0.join("tenure.mark")).unwrap();
    assert_eq!(block_on(look(&scratch.store(), &key("k"))).unwrap().0, "value");
}

#[test]
fn links_files_and_the_root_are_no_directories_for_a_store() {
    let scratch = Scratch::new("links");
    let store = scratch.store();
    let link = Scratch::new("link");
    symlink(store.path(), &link.0).unwrap();
    refused(File::open(&link.0), ErrorKind::Invalid, &[link.0.to_str().unwrap(), "symbolic link"]);
    std::fs::remove_file(&link.0).unwrap();
    refused(File::open(scratch.0.join("tenure.mark")), ErrorKind::Invalid, &["tenure.mark"]);
    refused(File::open("/"), ErrorKind::Invalid, &["below"]);
}

#[test]
fn a_link_on_the_way_is_resolved_once_and_its_target_is_checked() {
    let scratch = Scratch::new("way");
    std::fs::create_dir(&scratch.0).unwrap();
    std::fs::create_dir(scratch.0.join("real")).unwrap();
    symlink("real", scratch.0.join("link")).unwrap();
    let store = File::open(scratch.0.join("link/store")).unwrap();
    assert_eq!(store.path(), scratch.0.join("real/store"));
    set_mode(&scratch.0.join("real"), 0o777);
    refused(File::open(scratch.0.join("link/store")), ErrorKind::Unsupported, &["/real", "chmod go-w"]);
}

#[test]
fn a_directory_that_others_may_write_to_is_refused_unless_accepted() {
    let scratch = Scratch::new("writable");
    scratch.store();
    // A directory for every user, such as /tmp, is never told to be closed to them.
    let steps = [(0o770, "chmod 700"), (0o777, "chmod 700"), (0o1777, "Use a directory of your own in it")];
    for (open_to, step) in steps {
        set_mode(&scratch.0, open_to);
        refused(File::open(&scratch.0), ErrorKind::Unsupported, &[step, "accept_writable_by_others"]);
        File::builder().accept_writable_by_others().open(&scratch.0).unwrap();
    }
    set_mode(&scratch.0, 0o755);
    File::open(&scratch.0).unwrap();
}

#[test]
fn in_a_shared_temporary_directory_the_sticky_bit_decides() {
    let shared = Scratch::new("shared");
    std::fs::create_dir(&shared.0).unwrap();
    let path = shared.0.join("store");
    set_mode(&shared.0, 0o777);
    refused(File::open(&path), ErrorKind::Unsupported, &["every user may replace"]);
    set_mode(&shared.0, 0o1777);
    File::open(&path).unwrap();
}

#[test]
fn a_directory_in_which_a_group_may_replace_the_store_is_refused_unless_accepted() {
    let shared = Scratch::new("group");
    std::fs::create_dir(&shared.0).unwrap();
    let path = shared.0.join("store");
    File::open(&path).unwrap();
    let chmod = format!("chmod g-w {}", shared.0.display());
    set_mode(&shared.0, 0o775);
    refused(
        File::open(&path),
        ErrorKind::Unsupported,
        &["its group may replace", &chmod, "accept_writable_by_others"],
    );
    File::builder().accept_writable_by_others().open(&path).unwrap();
    set_mode(&shared.0, 0o1775);
    File::open(&path).unwrap();
}

/// It is an ordinary user id, and in a user namespace it stands for every unmapped user.
#[test]
fn a_directory_below_one_of_user_65534_is_refused_unless_accepted() {
    if !is_root() {
        return;
    }
    let above = Scratch::new("user-65534");
    std::fs::create_dir(&above.0).unwrap();
    let path = above.0.join("store");
    File::open(&path).unwrap();
    assert!(shell(&format!("chown 65534 {}", above.0.display())));
    refused(File::open(&path), ErrorKind::Unsupported, &["user 65534", "accept_foreign_owner"]);
    File::builder().accept_foreign_owner().open(&path).unwrap();
}

// ── foreign files in the place of the mark ──────────────────────────────────────────────────────────────────────────

#[test]
fn a_mark_that_is_a_link_to_another_file_is_not_written_to() {
    if !is_root() {
        return;
    }
    let (scratch, victim) = (Scratch::new("mark-link"), Scratch::new("victim"));
    std::fs::write(&victim.0, "precious").unwrap();
    let (directory, file) = (scratch.0.display(), victim.0.display());
    std::fs::create_dir(&scratch.0).unwrap();
    assert!(shell(&format!("chown 12345 {directory} && chmod 700 {directory}")));
    // The owner of the directory may put a foreign file there; root, who acts for the owner, must not write to it.
    let cases = [
        (format!("ln {file} {directory}/tenure.mark"), "hard link"),
        (format!("ln -s {file} {directory}/tenure.mark"), "symbolic link"),
        (format!("cp {file} {directory}/tenure.mark && chown 54321 {directory}/tenure.mark"), "user 54321"),
        (format!("mkfifo {directory}/tenure.mark"), "not a file"),
        (format!("mkdir {directory}/tenure.mark"), "not a file"),
    ];
    for (command, word) in cases {
        assert!(shell(&command), "{command}");
        let opened = File::builder().accept_foreign_owner().open(&scratch.0);
        refused(opened, ErrorKind::Corrupt, &[word, "tenure.mark", "move the file away"]);
        assert_eq!(std::fs::read_to_string(&victim.0).unwrap(), "precious", "{command}");
        assert!(shell(&format!("rm -r {directory}/tenure.mark")));
    }
    // The same while the store is open.
    let store = File::builder().accept_foreign_owner().open(&scratch.0).unwrap();
    assert!(shell(&format!("rm {directory}/tenure.mark && ln {file} {directory}/tenure.mark")));
    let answer = block_on(store.put(&key("k"), "value".into(), Expect::Absent));
    let error = answer.expect_err("the mark cannot be raised").to_string();
    assert!(error.contains("hard link"), "{error}");
    assert_eq!(std::fs::read_to_string(&victim.0).unwrap(), "precious");
    std::fs::remove_file(&victim.0).unwrap();
}

#[test]
fn a_backup_by_hard_links_makes_no_store_unusable_and_is_not_written_to() {
    let (scratch, backup) = (Scratch::new("mark-backup"), Scratch::new("backup"));
    drop(File::open(&scratch.0).unwrap());
    let mark = scratch.0.join("tenure.mark");
    std::fs::hard_link(&mark, &backup.0).unwrap();
    let before = std::fs::read(&backup.0).unwrap();
    let store = File::open(&scratch.0).unwrap();
    let put = block_on(store.put(&key("k"), "value".into(), Expect::Absent)).unwrap();
    assert!(matches!(put, Put::Applied { .. }), "{put:?}");
    assert_eq!(std::fs::read(&backup.0).unwrap(), before);
    assert_ne!(std::fs::read(&mark).unwrap(), before, "the mark goes on");
    std::fs::remove_file(&backup.0).unwrap();
}

#[test]
fn a_directory_of_another_user_is_refused_unless_accepted_and_then_stays_theirs() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("foreign");
    scratch.store();
    assert!(shell(&format!("chown -R 12345:12345 {}", scratch.0.display())));
    refused(File::open(&scratch.0), ErrorKind::Unsupported, &["user 12345", "accept_foreign_owner"]);
    refused(File::open(scratch.0.join("below")), ErrorKind::Unsupported, &["user 12345"]);
    assert!(!scratch.0.join("below").exists(), "nothing is made where it must not be");
    let store = File::builder().accept_foreign_owner().open(&scratch.0).unwrap();
    block_on(write(&store, &key("k"), "value", Expect::Absent));
    for file in std::fs::read_dir(&scratch.0).unwrap().map(|file| file.unwrap()) {
        assert_eq!(file.metadata().unwrap().uid(), 12345, "its owner could not read {file:?}");
    }
}

#[test]
fn a_file_system_that_is_not_local_is_refused_unless_named() {
    refused(File::open("/proc/self/tenure"), ErrorKind::Unsupported, &["is on proc"]);
    refused(File::open("/sys/kernel"), ErrorKind::Unsupported, &["sysfs", "accept_file_system(\"sysfs\")"]);
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("named");
    std::fs::create_dir(&scratch.0).unwrap();
    // A writable file system that is not in the table of known ones.
    let mount = format!("mount -t cgroup2 none {}", scratch.0.display());
    if !shell(&mount) {
        file_support::skipped("no file system can be mounted here");
        return;
    }
    let opened = File::open(&scratch.0);
    assert!(shell(&format!("umount {}", scratch.0.display())));
    refused(opened, ErrorKind::Unsupported, &["0x63677270", "not known to be local"]);
}

#[test]
fn an_overlay_of_local_disks_is_local() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("overlay");
    let all = ["lower", "upper", "work", "merged"];
    for name in all {
        std::fs::create_dir_all(scratch.0.join(name)).unwrap();
    }
    // Files from before the start of the container are in the lower layer.
    let below = File::open(scratch.0.join("lower/store")).unwrap();
    let first = block_on(write(&below, &key("k"), "lower", Expect::Absent));
    let [lower, upper, work, merged] = all.map(|name| scratch.0.join(name).display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    if !shell(&format!("mount -t overlay overlay -o {options} {merged}")) {
        file_support::skipped("no overlay can be mounted here");
        return;
    }
    let path = scratch.0.join("merged/store");
    let result = std::panic::catch_unwind(|| {
        let (one, two) = (File::open(&path).unwrap(), File::open(&path).unwrap());
        block_on(async {
            let second = write(&one, &key("k"), "upper", Expect::Version(first)).await;
            let third = write(&two, &key("k"), "again", Expect::Version(second)).await;
            assert_eq!(look(&one, &key("k")).await, Some(("again".to_owned(), third)));
        });
        drop((one, two));
    });
    assert!(shell(&format!("umount -l {merged}")));
    result.unwrap();
}

#[test]
fn the_url_of_any_path_is_plain_printable_text() {
    use std::os::unix::ffi::OsStrExt;
    let url = |bytes: &[u8]| File::url_of(Path::new(std::ffi::OsStr::from_bytes(bytes)));
    assert_eq!(url(b"/var/lib/tenure"), "file:///var/lib/tenure");
    assert_eq!(
        url(b"/a b/100%/x?y#z/\xc3\xbc/\xff/$'\"\n"),
        "file:///a%20b/100%25/x%3Fy%23z/%C3%BC/%FF/%24%27%22%0A"
    );
}

// ── read-only access ──────────────────────────────────────────────────────────────────────────────────────────────

fn open_to_read(path: &Path) -> File {
    File::builder().open_to_read(path).unwrap().expect("the directory exists")
}

#[test]
fn a_reader_creates_no_directory_and_learns_that_there_is_none() {
    let scratch = Scratch::new("look-nothing");
    assert!(File::builder().open_to_read(scratch.0.join("state/tenure")).unwrap().is_none());
    assert!(!scratch.0.exists(), "not even what is above it is made");
    // Nor does it create anything in an empty directory.
    std::fs::create_dir(&scratch.0).unwrap();
    let store = open_to_read(&scratch.0);
    assert_eq!(block_on(look(&store, &key("k"))), None);
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0);
}

#[test]
fn a_reader_sees_every_entry_and_changes_nothing() {
    let scratch = Scratch::new("look-only");
    let writer = scratch.store();
    let version = block_on(write(&writer, &key("k"), "value", Expect::Absent));
    let before: Vec<_> = scratch.names("");
    let store = open_to_read(&scratch.0);
    block_on(async {
        let seen = store.get(&key("k")).await.unwrap();
        assert_eq!(seen.entry.as_ref().unwrap().version, version);
        assert!(seen.entry.unwrap().age.is_some(), "ages are told as ever");
        let answer = store.put(&key("k"), "mine".into(), Expect::Version(version.clone())).await;
        let error = answer.expect_err("it may only look").to_string();
        assert!(error.contains("opened read-only"), "{error}");
        // It is not a copy: the writes of other processes show.
        write(&writer, &key("k"), "next", Expect::Version(version)).await;
        assert_eq!(look(&store, &key("k")).await.unwrap().0, "next");
    });
    assert_eq!(scratch.names("").len(), before.len());
}

#[test]
fn a_reader_makes_the_same_safety_checks() {
    let scratch = Scratch::new("look-careful");
    scratch.store();
    set_mode(&scratch.0, 0o777);
    let error = File::builder().open_to_read(&scratch.0).unwrap_err();
    assert!(error.to_string().contains("other users may write to it"), "{error}");
    set_mode(&scratch.0, 0o700);
    std::fs::create_dir(scratch.0.join("other")).unwrap();
    std::fs::write(scratch.0.join("other/notes.txt"), "mine").unwrap();
    let error = File::builder().open_to_read(scratch.0.join("other")).unwrap_err();
    assert!(error.to_string().contains("not a store"), "{error}");
}

// ── behaviour of the file system, whatever its name ─────────────────────────────────────────────────────────────────

#[test]
#[ignore = "a process of other tests"]
fn opener() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    match File::open(directory) {
        Ok(_) => println!("> opened"),
        Err(error) => println!("> {:?} {error}", error.kind()),
    }
}

fn opening_where(directory: &Path, inject: &str) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null", "-e", &format!("inject={inject}")]);
    command.arg(std::env::current_exe().unwrap()).args(["--ignored", "--exact", "opener", "--nocapture"]);
    command.env(DIRECTORY, directory);
    command
}

/// Output of another process that opens the directory while strace injects these answers into its calls.
fn opened_where(directory: &Path, inject: &str) -> String {
    let output = opening_where(directory, inject).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = said.split_once("> ").unwrap_or_else(|| panic!("{said} {output:?}")).1;
    answer.lines().next().unwrap().to_owned()
}

/// For example, locks exclude no other process on a network file system that is mounted with `nolock`.
#[test]
fn a_directory_on_a_misbehaving_file_system_is_refused_whatever_its_name() {
    if !Strace::is_there() {
        return;
    }
    for (inject, words) in [
        ("flock:retval=0", ["Unsupported", "two processes get one lock at the same time"]),
        ("flock:error=ENOLCK", ["Unsupported", "cannot test locks and renames"]),
        ("renameat:retval=0", ["Unsupported", "a rename does not replace the file"]),
        ("unlinkat:retval=0", ["Unsupported", "a removed file still exists"]),
        ("renameat2:retval=0", ["Unsupported", "a rename takes a name that must be free"]),
        ("fsync:error=EINVAL", ["Unsupported", "cannot test locks and renames"]),
        ("fsync:error=EIO", ["Unavailable", "The disk fails"]),
    ] {
        let scratch = Scratch::new("misbehaves");
        std::fs::create_dir(&scratch.0).unwrap();
        set_mode(&scratch.0, 0o700);
        let said = opened_where(&scratch.0, inject);
        println!("{inject}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{inject}: {said}");
        assert!(!scratch.0.join("tenure.mark").exists(), "{inject}: nothing is created in such a directory");
    }
}

/// A directory that is also mounted in a second place, until this is dropped.
struct Bind(PathBuf);

impl Bind {
    fn new(directory: &Path, other: &Path) -> Self {
        std::fs::create_dir(other).unwrap();
        assert!(shell(&format!("mount --bind {} {}", directory.display(), other.display())));
        Self(other.to_owned())
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        shell(&format!("umount {}", self.0.display()));
    }
}

#[test]
fn a_tested_directory_is_not_tested_again_in_this_boot_through_this_mount() {
    if !Strace::is_there() || !is_root() {
        return;
    }
    let scratch = Scratch::new("tried");
    let directory = scratch.0.join("store");
    File::open(&directory).unwrap();
    let misbehaves = "flock:retval=0";
    assert_eq!(opened_where(&directory, misbehaves), "opened", "it is not looked at again");
    // Another mount may have other options, even if it shows the same directory.
    let other = Bind::new(&directory, &scratch.0.join("other"));
    assert!(opened_where(&other.0, misbehaves).contains("two processes get one lock"));
    File::open(&other.0).unwrap();
    for path in [&other.0, &directory] {
        assert_eq!(opened_where(path, misbehaves), "opened", "both are remembered: {}", path.display());
    }
    drop(other);
    // After a copy, move or restore, the note describes another directory.
    let copy = scratch.0.join("copy");
    assert!(shell(&format!("cp -a {} {}", directory.display(), copy.display())));
    assert!(opened_where(&copy, misbehaves).contains("two processes get one lock"));
    // Half a note does not count.
    let note = directory.join("tenure.tried");
    let whole = std::fs::read(&note).unwrap();
    std::fs::write(&note, &whole[..whole.len() / 4]).unwrap();
    assert!(opened_where(&directory, misbehaves).contains("two processes get one lock"));
}

/// The mark must never have a second name, not even for a moment: a process that dies then would leave a store that
/// cannot be opened.
#[test]
fn a_directory_whose_first_user_was_killed_while_it_removed_a_name_can_be_opened() {
    if !Strace::is_there() {
        return;
    }
    let is_killed = |number: &usize| {
        let scratch = Scratch::new("killed");
        let opening = opening_where(&scratch.0, &format!("unlinkat:signal=KILL:when={number}")).output();
        scratch.store();
        opening.unwrap().status.signal() == Some(9)
    };
    let killed = (1..10).take_while(is_killed).count();
    assert!((1..9).contains(&killed), "killed at each name that it removed: {killed}");
}
