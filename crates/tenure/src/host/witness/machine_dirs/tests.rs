use std::os::unix::fs::{MetadataExt, PermissionsExt};

use tenure_core::machine::{Rules, Sighting, Standard};
use tenure_core::record::Witness;
use tenure_testkit::{FileSystem, Mounted};

use super::*;
use crate::host::witness::tests::{NONCE, Scratch, rand};

fn paths_of(user: u32, named: Option<&str>) -> Vec<String> {
    let paths = paths(user, named.map(PathBuf::from));
    paths.into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn all_processes_of_a_user_have_the_same_directories() {
    assert_eq!(paths_of(0, None), ["/run/tenure", "/dev/shm/tenure-0", "/tmp/tenure-0"]);
    assert_eq!(paths_of(33, None), ["/dev/shm/tenure-33", "/tmp/tenure-33"]);
    assert_eq!(paths_of(1000, None), ["/tmp/tenure-1000", "/dev/shm/tenure-1000"]);
}

#[test]
fn an_explicitly_named_directory_is_first_and_that_of_a_login_is_skipped() {
    let named = ["/run/billing/tenure", "/tmp/tenure-1000", "/dev/shm/tenure-1000"];
    assert_eq!(paths_of(1000, Some("/run/billing")), named);
    for login in ["/run/user/1000", "", "billing"] {
        assert_eq!(paths_of(1000, Some(login)), named[1..]);
    }
}

/// Directories `names` below a directory of the test, in the state they have on a machine: each is created on first
/// use.
fn machine_dirs(scratch: &Scratch, names: &[&str]) -> MachineDirs {
    MachineDirs::new(names.iter().map(|name| scratch.0.join(name)).collect(), "this-boot".to_owned())
}

fn look(dirs: &MachineDirs, named: &Witness) -> Sighting {
    let seen = dirs.directories().map(|directory| directory.look(named, NONCE));
    seen.into_iter().find(|sighting| sighting.found).unwrap_or_default()
}

fn names(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

fn assert_locked_until_dropped(dirs: &MachineDirs, lock: Lock) {
    lock.list(NONCE).unwrap();
    let named = Witness::clone(lock.named());
    assert!(look(dirs, &named).is_locked());
    drop(lock);
    assert!(Standard.is_dead(look(dirs, &named)));
}

/// A witness without a holder.
fn dead(dirs: &MachineDirs) -> Witness {
    let lock = dirs.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    Witness::clone(lock.named())
}

#[test]
fn a_reader_creates_nothing_and_the_first_witness_creates_one_private_directory() {
    let scratch = Scratch::new();
    let dirs = machine_dirs(&scratch, &["a", "b"]);
    let stranger = Witness::new("0".repeat(32) + ".witness", 1);
    assert_eq!(look(&dirs, &stranger), Sighting::default());
    dirs.sweep();
    assert!(names(&scratch.0).is_empty());
    let lock = dirs.create(rand()).unwrap();
    assert_eq!(names(&scratch.0), ["a"]);
    let directory = std::fs::metadata(scratch.0.join("a")).unwrap();
    assert_eq!(directory.mode() & 0o777, 0o700);
    assert_locked_until_dropped(&dirs, lock);
}

#[test]
fn a_directory_that_others_could_change_or_that_cannot_be_created_is_skipped() {
    type Spoil = fn(&Path);
    let spoilers: [(&str, Spoil); 5] = [
        ("one that others may write to", |path| {
            std::fs::create_dir(path).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("a link", |path| std::os::unix::fs::symlink(std::env::temp_dir(), path).unwrap()),
        ("a file", |path| std::fs::write(path, "").unwrap()),
        ("one of another user", |path| {
            std::fs::create_dir(path).unwrap();
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(path, Some(4242), None).unwrap();
            } else {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o770)).unwrap();
            }
        }),
        ("one on no disk", |path| std::os::unix::fs::symlink("/proc/self", path).unwrap()),
    ];
    for (what, spoil) in spoilers {
        let scratch = Scratch::new();
        spoil(&scratch.0.join("a"));
        let dirs = machine_dirs(&scratch, &["missing/a", "a", "b"]);
        let named = dead(&dirs);
        assert_eq!(names(&scratch.0.join("b")), [named.name.as_str()], "{what}");
        assert!(Standard.is_dead(look(&dirs, &named)), "{what}");
        assert!(!scratch.0.join("missing").exists(), "what a login makes is not made here");
    }
}

#[test]
fn a_service_finds_the_witness_of_a_shell_that_has_fewer_directories() {
    let scratch = Scratch::new();
    let (service, shell) = (machine_dirs(&scratch, &["own/tenure", "x"]), machine_dirs(&scratch, &["x"]));
    std::fs::create_dir(scratch.0.join("own")).unwrap();
    assert!(Standard.is_dead(look(&service, &dead(&shell))));
    assert_eq!(look(&shell, &dead(&service)), Sighting::default(), "it does not know that directory");
}

#[test]
fn inside_an_overlay_a_directory_is_skipped_and_the_next_one_has_the_witness() {
    for kind in [FileSystem::OverlayOnTmpfs, FileSystem::OverlayOnExt4] {
        let Some(mounted) = Mounted::new(kind) else { return };
        let paths = vec![mounted.path().join("a"), mounted.runtime().join("b")];
        let dirs = MachineDirs::new(paths, "this-boot".to_owned());
        let lock = dirs.create(rand()).unwrap();
        assert!(names(&mounted.path().join("a")).is_empty());
        assert_eq!(names(&mounted.runtime().join("b")), [lock.named().name.as_str()]);
        assert_locked_until_dropped(&dirs, lock);
    }
}

#[test]
fn without_any_directory_there_is_no_witness() {
    let scratch = Scratch::new();
    let dirs = machine_dirs(&scratch, &["missing/a"]);
    assert!(dirs.create(rand()).is_err());
    assert!(names(&scratch.0).is_empty());
}

#[test]
fn a_deleted_directory_is_created_anew_and_its_old_witness_proves_nothing() {
    let scratch = Scratch::new();
    let dirs = machine_dirs(&scratch, &["a"]);
    let lock = dirs.create(rand()).unwrap();
    std::fs::remove_dir_all(scratch.0.join("a")).unwrap();
    assert!(lock.list(NONCE).is_err());
    let named = dead(&dirs);
    assert!(Standard.is_dead(look(&dirs, &named)));
    assert_eq!(look(&dirs, lock.named()), Sighting::default());
}

#[test]
fn many_witnesses_share_one_descriptor_of_their_directory() {
    let scratch = Scratch::new();
    let dirs = machine_dirs(&scratch, &["a"]);
    let first = dirs.create(rand()).unwrap();
    let directory = dirs.directories().next().unwrap();
    let more: Vec<_> = (0..50).map(|_| dirs.create(rand()).unwrap()).collect();
    assert!(Arc::ptr_eq(&directory, &dirs.directories().next().unwrap()));
    // Only its witnesses and this test have the directory open. Counted by references, because other tests open
    // descriptors at the same time.
    assert_eq!(Arc::strong_count(&directory), 1 + 1 + more.len());
    drop((first, more));
    assert_eq!(dirs.latest().strong_count(), 1);
}

#[test]
fn witnesses_of_dead_holders_are_deleted_after_a_day_and_nothing_else_is() {
    let scratch = Scratch::new();
    let dirs = machine_dirs(&scratch, &["a"]);
    let directory = scratch.0.join("a");
    let age = |name: &str| {
        let day = std::time::Duration::from_secs(25 * 60 * 60);
        let file = std::fs::OpenOptions::new().write(true).open(directory.join(name)).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - day).unwrap();
    };
    let (old, young, living) = (dead(&dirs), dead(&dirs), dirs.create(rand()).unwrap());
    std::fs::write(directory.join("note"), "of a user").unwrap();
    [&old.name, &living.named().name, "note"].into_iter().for_each(age);
    dirs.sweep();
    let mut left = names(&directory);
    left.sort();
    let mut expected = vec![young.name.clone(), living.named().name.clone(), "note".to_owned()];
    expected.sort();
    assert_eq!(left, expected);
    // A process sweeps only once.
    age(&young.name);
    dirs.sweep();
    assert!(names(&directory).contains(&young.name));
}
