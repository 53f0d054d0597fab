#![expect(unsafe_code, reason = "there is no safe way to close what others own")]

use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_core::machine::{Rules, Sighting, Standard};
use tenure_core::record::{Nonce, Witness};
use tenure_testkit::{FileSystem, Mounted, skipped, tests_in};

use super::directory::WitnessDirectory;
use super::files::WitnessFiles;
use super::*;

/// Creates witnesses in a directory of the kernel.
trait CreateWitness {
    fn create(&self, random: u128) -> std::io::Result<Lock>;

    /// Whatever is known of the file system.
    fn create_anywhere(&self, random: u128) -> std::io::Result<Lock>;
}

impl CreateWitness for Arc<WitnessDirectory> {
    fn create(&self, random: u128) -> std::io::Result<Lock> {
        Lock::create_in(&(Arc::clone(self) as Arc<dyn WitnessFiles>), random)
    }

    fn create_anywhere(&self, random: u128) -> std::io::Result<Lock> {
        Lock::make_in(&(Arc::clone(self) as Arc<dyn WitnessFiles>), random)
    }
}

/// A directory for witnesses; deleted when dropped.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-witness-{}-{number}", std::process::id());
        let path = tests_in(std::env::temp_dir()).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn directory(&self) -> Arc<WitnessDirectory> {
        Arc::new(WitnessDirectory::open(&self.0, None).unwrap())
    }

    fn path_of(&self, named: &Witness) -> PathBuf {
        self.0.join(&named.name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) const NONCE: Nonce = Nonce::from_bits(0xabcdef);

/// A witness whose holder is dead.
fn dead(directory: &Arc<WitnessDirectory>) -> Witness {
    let lock = directory.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    Witness::clone(lock.named())
}

pub(super) fn rand() -> u128 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 70
}

fn proves_death(directory: &WitnessDirectory, named: &Witness) -> bool {
    Standard.is_dead(directory.look(named, NONCE))
}

#[test]
fn a_witness_is_locked_from_the_start_until_it_is_dropped() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    let named = Arc::clone(lock.named());
    let living = Sighting {
        found: true,
        same_file: true,
        guards_locked: true,
        tree_locked: false,
        lists_nonce: false,
    };
    assert_eq!(directory.look(&named, NONCE), living);
    lock.list(NONCE).unwrap();
    assert_eq!(directory.look(&named, NONCE), Sighting { lists_nonce: true, ..living });
    assert_eq!(std::fs::metadata(scratch.path_of(&named)).unwrap().mode() & 0o777, 0o600);
    // A second `WitnessDirectory` on the same path stands for another process.
    drop(lock);
    assert!(proves_death(&scratch.directory(), &named));
    assert!(!Standard.is_dead(directory.look(&named, Nonce::from_bits(1))), "a nonce that is not listed");
}

#[test]
fn a_shared_witness_stays_locked_until_its_last_owner_drops_it() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    let named = Arc::clone(lock.named());
    let (first, second) = (lock.share(WitnessPart::Both).unwrap(), lock.share(WitnessPart::Tree).unwrap());
    drop(first);
    assert!(directory.look(&named, NONCE).is_locked());
    drop(lock);
    assert!(directory.look(&named, NONCE).is_locked(), "one who shares it still acts");
    drop(second);
    assert!(proves_death(&directory, &named));
}

#[test]
fn guards_and_tree_are_distinguished_and_either_keeps_the_holder_alive() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    let named = Arc::clone(lock.named());
    let locked = || {
        let seen = directory.look(&named, NONCE);
        assert_eq!(Standard.is_dead(seen), !seen.guards_locked && !seen.tree_locked, "{seen:?}");
        (seen.guards_locked, seen.tree_locked)
    };
    assert_eq!(locked(), (true, false), "a holder locks the part of the guards alone");
    let watchdog = lock.share(WitnessPart::Both).unwrap();
    let child = lock.share(WitnessPart::Tree).unwrap();
    assert_eq!(locked(), (true, true));
    drop(lock);
    assert_eq!(locked(), (true, true), "the watchdog has both");
    drop(watchdog);
    assert_eq!(locked(), (false, true), "an orphan");
    directory.remove_dead(&named).unwrap();
    assert!(scratch.path_of(&named).exists(), "the witness of an orphan stays");
    drop(child);
    assert_eq!(locked(), (false, false));
}

#[test]
fn a_lock_on_any_other_byte_counts_too() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    let named = Arc::clone(lock.named());
    let file = std::fs::File::open(scratch.path_of(&named)).unwrap();
    // SAFETY: all zeroes is a valid lock.
    let mut later: libc::flock = unsafe { std::mem::zeroed() };
    (later.l_type, later.l_start, later.l_len) = (libc::F_RDLCK as _, 7, 1);
    // SAFETY: the descriptor is open and the lock lives.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const later) }, 0);
    drop(lock);
    assert!(directory.look(&named, NONCE).is_locked());
    drop(file);
    assert!(proves_death(&directory, &named));
}

#[test]
fn a_replaced_or_altered_file_proves_nothing() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    type Spoil = fn(&std::path::Path);
    let spoilers: [(&str, Spoil); 7] = [
        ("a copy that replaced it", |path| {
            let copy = path.with_extension("copy");
            std::fs::copy(path, &copy).unwrap();
            std::fs::rename(copy, path).unwrap();
        }),
        ("a symbolic link to it", |path| {
            std::fs::rename(path, path.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink(path.with_extension("moved"), path).unwrap();
        }),
        ("a fifo", |path| {
            std::fs::remove_file(path).unwrap();
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("one with a second name", |path| std::fs::hard_link(path, path.with_extension("second")).unwrap()),
        ("one that was cut off", |path| {
            std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(7).unwrap()
        }),
        ("one that grew", |path| {
            std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(70_000).unwrap()
        }),
        ("nothing", |path| std::fs::remove_file(path).unwrap()),
    ];
    for (what, spoil) in spoilers {
        let named = dead(&directory);
        assert!(proves_death(&directory, &named));
        spoil(&scratch.path_of(&named));
        assert!(!proves_death(&directory, &named), "{what}");
    }
}

#[test]
fn a_second_name_does_not_hide_a_lock() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    let tree = lock.share(WitnessPart::Tree).unwrap();
    let path = scratch.path_of(lock.named());
    // A backup by hard links creates such a second name.
    std::fs::hard_link(&path, path.with_extension("second")).unwrap();
    let seen = directory.look(lock.named(), NONCE);
    assert!(seen.same_file && seen.guards_locked && seen.tree_locked, "{seen:?}");
    assert!(lock.list(NONCE).is_ok(), "the holder goes on listing");
    drop(tree);
}

#[test]
fn a_copy_with_its_name_and_attributes_in_another_directory_proves_nothing() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    assert!(
        Command::new("cp")
            .arg("-a")
            .arg(scratch.path_of(lock.named()))
            .arg(&other.0)
            .status()
            .unwrap()
            .success()
    );
    let seen = other.directory().look(lock.named(), NONCE);
    assert_eq!(seen, Sighting { found: true, ..Sighting::default() });
}

#[test]
fn a_file_of_another_user_proves_nothing() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can give files away");
    }
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let named = dead(&directory);
    std::os::unix::fs::chown(scratch.path_of(&named), Some(54_321), None).unwrap();
    assert!(!proves_death(&directory, &named));
    // Exception: the user who owns the directory. Root gives the files that it creates there to that user.
    std::os::unix::fs::chown(&scratch.0, Some(54_321), Some(54_321)).unwrap();
    let directory = scratch.directory();
    assert!(proves_death(&directory, &named));
    let lock = directory.create(rand()).unwrap();
    assert_eq!(std::fs::metadata(scratch.path_of(lock.named())).unwrap().uid(), 54_321);
    lock.list(NONCE).unwrap();
    assert!(directory.look(lock.named(), NONCE).lists_nonce);
}

#[test]
fn a_torn_slot_is_not_trusted_and_neither_is_a_flipped_bit() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let named = dead(&directory);
    let path = scratch.path_of(&named);
    let whole = std::fs::read(&path).unwrap();
    for at in 0..nonce_ring::SLOT {
        let mut torn = whole.clone();
        torn[at] ^= 1;
        write_in_place(&path, &torn);
        assert!(!proves_death(&directory, &named), "byte {at}");
    }
    write_in_place(&path, &whole);
    assert!(proves_death(&directory, &named));
}

fn write_in_place(path: &std::path::Path, bytes: &[u8]) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
}

#[test]
fn on_a_network_only_the_boot_of_the_holder_can_judge_its_witness() {
    let scratch = Scratch::new();
    let here = Arc::new(WitnessDirectory::open(&scratch.0, Some("this-boot".to_owned())).unwrap());
    let named = dead(&here);
    assert_eq!(named.boot.as_deref(), Some("this-boot"));
    assert!(proves_death(&here, &named));
    // A clone of the disk has the same file with the same inode, but another boot.
    let clone = WitnessDirectory::open(&scratch.0, Some("another-boot".to_owned())).unwrap();
    assert!(!proves_death(&clone, &named));
    assert!(!proves_death(&scratch.directory(), &named) && !proves_death(&here, &named.with_boot(None)));
}

#[test]
fn files_without_the_name_of_a_witness_are_not_opened() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    for name in ["", ".", "..", "a/b", "tenure.mark", "../x.witness", "/etc/passwd"] {
        let named = Witness::new(name, 1);
        assert_eq!(directory.look(&named, NONCE), Sighting::default(), "{name}");
    }
}

#[test]
fn a_witness_whose_file_was_replaced_is_an_error_and_the_other_file_stays() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    let path = scratch.path_of(lock.named());
    std::fs::rename(&path, path.with_extension("moved")).unwrap();
    assert!(lock.list(NONCE).is_err() && lock.share(WitnessPart::Tree).is_err());
    std::fs::write(&path, nonce_ring::EMPTY).unwrap();
    assert!(lock.list(NONCE).is_err() && lock.share(WitnessPart::Tree).is_err(), "another file has its name");
    assert_eq!(std::fs::read(&path).unwrap(), nonce_ring::EMPTY);
    lock.remove().unwrap();
    assert!(path.exists(), "it is not ours to remove");
}

#[test]
fn dead_witnesses_are_deleted_and_live_ones_are_not() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    let named = Arc::clone(lock.named());
    directory.remove_dead(&named).unwrap();
    assert!(scratch.path_of(&named).exists());
    drop(lock);
    directory.remove_dead(&named).unwrap();
    assert!(!scratch.path_of(&named).exists());
}

#[test]
fn an_unlocked_witness_that_no_lease_used_is_swept_at_once_and_a_used_one_after_a_day() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let locks = [directory.create(rand()).unwrap(), directory.create(rand()).unwrap()];
    let [spare, used] = [0, 1].map(|number: usize| scratch.path_of(locks[number].named()));
    locks[1].list(Nonce::from_bits(7)).unwrap();
    let seconds = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    directory.sweep(seconds).unwrap();
    assert!(spare.exists() && used.exists(), "both are locked");
    drop(locks);
    directory.sweep(seconds).unwrap();
    assert!(!spare.exists() && used.exists());
    directory.sweep(seconds + 25 * 3600).unwrap();
    assert!(!used.exists());
}

#[test]
fn a_witness_knows_whether_a_disk_is_behind_it() {
    let open = |path: &str| Arc::new(WitnessDirectory::open(path.as_ref(), None).unwrap());
    assert!(open("/dev/shm").is_in_memory());
    assert!(!open("/proc").is_in_memory());
    let lock = open("/dev/shm").create(rand()).unwrap();
    assert!(lock.is_in_memory());
    lock.remove().unwrap();
}

#[test]
fn a_directory_that_cannot_be_written_to_gets_no_witness() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let taken = directory.create(7).unwrap();
    assert!(directory.create(7).is_err(), "names are never used again");
    assert!(scratch.path_of(taken.named()).exists(), "and what has the name stays");
    std::fs::set_permissions(&scratch.0, std::fs::Permissions::from_mode(0o500)).unwrap();
    if !rustix::process::geteuid().is_root() {
        assert!(directory.create(8).is_err());
    }
    std::fs::remove_dir_all(&scratch.0).unwrap();
    assert!(directory.create(9).is_err(), "the directory is deleted");
}

// ── a process that becomes a daemon ─────────────────────────────────────────────────────────────────────────────────

const CHILD: &str = "TENURE_TEST_DAEMON_IN";

#[test]
#[ignore = "a process of other tests"]
fn daemon() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let directory = Arc::new(WitnessDirectory::open(std::path::Path::new(&path), None).unwrap());
    let lock = directory.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    // SAFETY: daemons do this, and the lock must survive it. Nothing here is closed again.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
    // The closed descriptor numbers are reused for other files.
    let strangers: Vec<_> = (0..20).map(|_| std::fs::File::open("/").unwrap().as_raw_fd()).collect();
    assert!(
        !strangers.is_empty() && lock.list(Nonce::from_bits(1)).is_err() && directory.create(rand()).is_err()
    );
    println!("\n> {} {}", lock.named().name, lock.named().inode);
    std::mem::forget((lock, directory));
    let _ = std::io::stdin().lines().next();
    // SAFETY: nothing needs to be torn down.
    unsafe { libc::_exit(0) };
}

fn start_daemon(scratch: &Scratch) -> (Child, Witness) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "host::witness::tests::daemon", "--nocapture"])
        .env(CHILD, &scratch.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let mut said = lines.filter_map(|line| line.strip_prefix("> ").map(str::to_owned));
    let said = said.next().expect("it says which witness is its own");
    let (name, inode) = said.split_once(' ').unwrap();
    (child, Witness::new(name, inode.parse().unwrap()))
}

#[test]
fn closing_every_descriptor_does_not_free_the_witness_and_death_does() {
    let scratch = Scratch::new();
    let (mut child, named) = start_daemon(&scratch);
    let directory = scratch.directory();
    let seen = directory.look(&named, NONCE);
    assert!(seen.same_file && seen.is_locked() && seen.lists_nonce, "{seen:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(proves_death(&directory, &named));
}

// ── file systems ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Runs the other tests of this module in each file system where a mapping keeps the lock.
#[test]
fn these_tests_hold_inside_every_file_system_that_keeps_a_lock() {
    let kinds = [FileSystem::Tmpfs, FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];
    Mounted::each(&kinds, |mounted| mounted.rerun(&["witness::"], &["inside"]));
}

const OVERLAYS: [FileSystem; 2] = [FileSystem::OverlayOnTmpfs, FileSystem::OverlayOnExt4];

#[test]
fn inside_an_overlay_no_lock_passes_the_check_and_no_file_remains() {
    Mounted::each(&OVERLAYS, |mounted| {
        let directory = Arc::new(WitnessDirectory::open(mounted.path(), None).unwrap());
        // The sighting alone refuses most of them. A few may pass, because another test forks at the same time.
        let given = (0..20).filter_map(|_| directory.create_anywhere(rand()).ok());
        assert!(given.map(|lock| lock.remove().unwrap()).count() < 10, "inside {:?}", mounted.kind());
        assert!((0..20).all(|_| directory.create(rand()).is_err()), "inside {:?}", mounted.kind());
        assert_eq!(std::fs::read_dir(mounted.path()).unwrap().count(), 0);
    });
}

/// A child that is forked while the descriptor is open has a copy of it, and keeps the lock for a moment.
#[test]
#[expect(clippy::disallowed_methods, reason = "a thread of the test forks while another one makes witnesses")]
fn inside_an_overlay_constant_forks_do_not_make_the_check_pass() {
    let Some(mounted) = Mounted::new(FileSystem::OverlayOnTmpfs) else { return };
    let directory = Arc::new(WitnessDirectory::open(mounted.path(), None).unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the child only sleeps and leaves by _exit.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: see above.
                    unsafe {
                        libc::usleep(300);
                        libc::_exit(0);
                    }
                }
                // SAFETY: this process forked the child.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            }
        });
        let given = (0..2_000).filter(|_| directory.create(rand()).is_ok()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(given, 0, "their locks are gone by now");
    });
}

#[test]
fn a_lost_lock_deletes_its_witness_before_another_nonce_is_listed() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let lock = directory.create(rand()).unwrap();
    lock.list(NONCE).unwrap();
    let path = scratch.path_of(lock.named());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    // The mapping of the witness is the only one without access rights that is also shared.
    let inode = lock.named().inode.to_string();
    let is_it = |line: &&str| line.contains(" ---s ") && line.split_whitespace().nth(4) == Some(&inode);
    let mapped = maps.lines().find(is_it).expect("it is mapped");
    let start = usize::from_str_radix(mapped.split_once('-').unwrap().0, 16).unwrap();
    // SAFETY: this is the mapping of the witness. No code reads or writes it, and the test forgets it below.
    assert_eq!(unsafe { libc::munmap(start as *mut _, 4096) }, 0);
    assert!(proves_death(&directory, lock.named()), "as a contender sees it now");
    assert!(lock.list(Nonce::from_bits(1)).is_err());
    assert!(!path.exists());
    assert_eq!(directory.look(lock.named(), NONCE), Sighting::default());
    std::mem::forget(lock);
}
