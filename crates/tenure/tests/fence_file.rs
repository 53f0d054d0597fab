//! Fenced files and logs: what they refuse, what they keep, and on which file systems.
#![expect(unsafe_code, reason = "there is no safe way to become another user")]

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tenure::fence::{Fence, FenceError, FencedFile, FencedLog, FencingToken, FileMark, Seal};
use tenure::store::Memory;
use tenure::{Coordinator, ErrorKind, Token};
use tenure_testkit::{FileSystem, Mounted, skipped};

fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}

/// A directory of its own, removed at the end.
struct Home(PathBuf);

impl Home {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn home() -> Home {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("tenure-fence-file-{}-{number}", std::process::id()));
    fs::create_dir(&path).unwrap();
    Home(path)
}

/// Asserts that every call fails with this kind and these words, and that the directory stays as it is.
#[track_caller]
fn is_refused(path: &Path, kind: ErrorKind, words: &[&str]) {
    let (file, log) = (FencedFile::new(path), FencedLog::new(path));
    let before = names(path);
    for error in [
        file.put_blocking(&token(7), b"x").unwrap_err(),
        file.put_from_blocking(&token(7), &b"x"[..]).unwrap_err(),
        file.seal_blocking(&token(7)).unwrap_err(),
        log.append_blocking(&token(7), b"x").unwrap_err(),
        log.append_from_blocking(&token(7), &b"x"[..]).unwrap_err(),
        log.seal_blocking(&token(7)).unwrap_err(),
    ] {
        let error = tenure::Error::from(error);
        assert_eq!(error.kind(), kind, "{error}");
        for part in words {
            assert!(error.to_string().contains(part), "{part:?} is missing: {error}");
        }
    }
    assert_eq!(names(path), before);
}

fn names(path: &Path) -> Vec<PathBuf> {
    let Some(Ok(entries)) = path.parent().map(fs::read_dir) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_holder_writes_through_its_lease_and_a_late_one_is_refused() {
    let home = home();
    let tenure = Coordinator::connect(Memory::new()).await.unwrap();
    let (file, log) =
        (FencedFile::new(home.path().join("report.csv")), FencedLog::new(home.path().join("ledger")));
    let lease = tenure.lease("billing").unwrap().acquire().await.unwrap();
    lease.fenced(&file).seal().await.unwrap();
    lease.fenced(&file).write(Bytes::from("a,1\n")).await.unwrap();
    assert_eq!(lease.fenced(&log).write(Bytes::from("one\n")).await.unwrap(), 4);
    assert_eq!(file.mark_blocking().unwrap().as_ref(), Some(lease.fencing_token()));
    assert_eq!(log.mark_blocking().unwrap().as_ref(), Some(lease.fencing_token()));
    let late = lease.fencing_token().clone();
    lease.release().await.unwrap();

    let next = tenure.lease("billing").unwrap().acquire().await.unwrap();
    next.fenced(&log).seal().await.unwrap();
    next.fenced(&file).write(Bytes::from("a,2\n")).await.unwrap();
    for refused in [
        file.write(&late, Bytes::from("a,1\n")).await.unwrap_err(),
        log.write(&late, Bytes::from("two\n")).await.unwrap_err(),
        file.seal(&late).await.unwrap_err(),
    ] {
        assert!(refused.is_stale(), "{refused}");
        for part in [&late.token().to_string(), &next.token().to_string(), "billing"] {
            assert!(refused.to_string().contains(part), "{refused}");
        }
    }
    assert_eq!(fs::read_to_string(file.path()).unwrap(), "a,2\n");
    assert_eq!(fs::read_to_string(log.path()).unwrap(), "one\n");
}

#[test]
fn what_is_not_a_plain_file_is_refused_and_stays() {
    let home = home();
    let here = home.path();
    fs::create_dir(here.join("folder")).unwrap();
    is_refused(&here.join("folder"), ErrorKind::Invalid, &["folder", "it is a directory"]);
    is_refused(&here.join("folder/"), ErrorKind::Invalid, &["it is a directory"]);
    fs::write(here.join("target"), "content").unwrap();
    symlink(here.join("target"), here.join("link")).unwrap();
    is_refused(&here.join("link"), ErrorKind::Invalid, &["symbolic link", "name its target"]);
    assert!(Command::new("mkfifo").arg(here.join("pipe")).status().unwrap().success());
    is_refused(&here.join("pipe"), ErrorKind::Invalid, &["it is a pipe"]);
    is_refused(Path::new("/dev/null"), ErrorKind::Invalid, &["device"]);
    assert_eq!(fs::read_to_string(here.join("target")).unwrap(), "content");
}

#[test]
fn a_path_that_names_no_file_of_an_existing_directory_is_refused() {
    let home = home();
    let here = home.path();
    for path in ["", "/", "..", "/tmp/.."] {
        is_refused(Path::new(path), ErrorKind::Invalid, &["does not name a file"]);
    }
    is_refused(&here.join("missing/report"), ErrorKind::Unavailable, &["missing", "No such file"]);
    fs::write(here.join("plain"), "").unwrap();
    is_refused(&here.join("plain/report"), ErrorKind::Corrupt, &["plain", "Name a directory"]);
    is_refused(&here.join("x".repeat(300)), ErrorKind::Invalid, &["300 bytes", "shorten"]);
    is_refused(&here.join(OsStr::from_bytes(b"a\xff")), ErrorKind::Invalid, &["not UTF-8"]);
    is_refused(&here.join(".report.fence"), ErrorKind::Invalid, &["name the file itself"]);
    is_refused(&here.join(".report.fence.3"), ErrorKind::Invalid, &["name the file itself"]);
    is_refused(Path::new("/proc/report"), ErrorKind::Unsupported, &["proc", "not known to be local"]);
}

#[test]
fn strange_names_are_names() {
    let home = home();
    for name in ["a b", "-rf", "$(id)", "*", "new\nline", "grün", ".hidden", "a.fence", &"x".repeat(245)] {
        let file = FencedFile::new(home.path().join(name));
        file.put_blocking(&token(7), name.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fs::read(file.path()).unwrap(), name.as_bytes());
        assert!(file.put_blocking(&token(6), b"late").unwrap_err().is_stale());
    }
}

#[test]
fn the_token_of_another_lease_and_the_other_kind_of_fence_are_refused() {
    let home = home();
    let (file, log) = (FencedFile::new(home.path().join("f")), FencedLog::new(home.path().join("l")));
    file.put_blocking(&token(7), b"x").unwrap();
    log.append_blocking(&token(7), b"x").unwrap();
    let other: FencingToken = "payroll=900".parse().unwrap();
    for error in
        [file.put_blocking(&other, b"y").unwrap_err(), log.append_blocking(&other, b"y").unwrap_err()]
    {
        assert!(matches!(error, FenceError::OtherLease { .. }), "{error}");
    }
    let error = FencedLog::new(file.path()).append_blocking(&token(7), b"y").unwrap_err();
    assert!(error.to_string().contains("replaced as a whole"), "{error}");
    let error = FencedFile::new(log.path()).put_blocking(&token(7), b"y").unwrap_err();
    assert!(error.to_string().contains("fenced as a log"), "{error}");
    assert_eq!(fs::read(file.path()).unwrap(), b"x");
    assert_eq!(fs::read(log.path()).unwrap(), b"x");
}

#[test]
fn a_sealed_path_without_content_becomes_what_is_written_first() {
    let home = home();
    let path = home.path().join("new");
    FencedFile::new(&path).seal_blocking(&token(7)).unwrap();
    assert_eq!(FileMark::read_blocking(&path).unwrap().unwrap().log_length(), None);
    let log = FencedLog::new(&path);
    assert!(log.append_blocking(&token(6), b"late").unwrap_err().is_stale());
    assert_eq!(log.append_blocking(&token(7), b"one\n").unwrap(), 4);
    let mark = FileMark::read_blocking(&path).unwrap().unwrap();
    assert_eq!((mark.token(), mark.log_length()), (&token(7), Some(4)));
    assert!(FencedFile::new(&path).put_blocking(&token(8), b"x").is_err());

    let path = home.path().join("other");
    let file = FencedFile::new(&path);
    file.seal_blocking(&token(7)).unwrap();
    FencedLog::new(&path).seal_blocking(&token(7)).unwrap();
    file.put_blocking(&token(7), b"whole").unwrap();
    assert_eq!(FileMark::read_blocking(&path).unwrap().unwrap().log_length(), None);
    let error = FencedLog::new(&path).append_blocking(&token(7), b"x").unwrap_err();
    assert!(error.to_string().contains("replaced as a whole"), "{error}");
}

#[test]
fn a_file_with_content_and_without_a_mark_is_fenced_only_on_purpose() {
    let home = home();
    let path = home.path().join("existing");
    fs::write(&path, "old\n").unwrap();
    is_refused(
        &path,
        ErrorKind::Corrupt,
        &["has 4 bytes and no mark", ".existing.fence", "token 7", "adopt"],
    );
    let log = FencedLog::new(&path);
    assert_eq!(log.mark_blocking().unwrap(), None);
    log.adopt_blocking(&token(7)).unwrap();
    assert_eq!(log.append_blocking(&token(7), b"new\n").unwrap(), 8);
    assert!(log.adopt_blocking(&token(6)).unwrap_err().is_stale(), "the mark that is there counts");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\nnew\n");

    let empty = home.path().join("empty");
    fs::write(&empty, "").unwrap();
    FencedFile::new(&empty).put_blocking(&token(7), b"an empty file has nothing to lose").unwrap();
}

#[test]
fn a_mark_that_went_back_is_told_and_refused_until_it_is_acknowledged() {
    let home = home();
    let file = FencedFile::new(home.path().join("report"));
    let mark = file.mark_path().unwrap();
    file.put_blocking(&token(7), b"seven").unwrap();
    let backup = fs::read(&mark).unwrap();
    file.put_blocking(&token(9), b"nine").unwrap();
    fs::write(&mark, &backup).unwrap();
    for error in [
        file.put_blocking(&token(8), b"eight").unwrap_err(),
        file.put_blocking(&token(10), b"ten").unwrap_err(),
        file.seal_blocking(&token(10)).unwrap_err(),
        file.mark_blocking().unwrap_err(),
    ] {
        let FenceError::WentBack { seen, shown, .. } = error else { panic!("{error}") };
        assert_eq!((seen.get(), shown.get()), (9, 7));
    }
    fs::remove_file(&mark).unwrap();
    let error = file.put_blocking(&token(10), b"ten").unwrap_err();
    assert!(matches!(error, FenceError::WentBack { shown: Token::ZERO, .. }), "{error}");
    assert_eq!(fs::read(file.path()).unwrap(), b"nine");
    file.acknowledge();
    file.adopt_blocking(&token(10)).unwrap();
    file.put_blocking(&token(10), b"ten").unwrap();
    assert!(file.put_blocking(&token(9), b"nine").unwrap_err().is_stale());
}

#[test]
fn a_damaged_mark_is_never_taken_for_a_missing_one() {
    for log in [false, true] {
        let home = home();
        let path = home.path().join("data");
        let (file, of_log) = (FencedFile::new(&path), FencedLog::new(&path));
        let write = |number| {
            if log {
                of_log.append_blocking(&token(number), b"x").map(|_| ())
            } else {
                file.put_blocking(&token(number), b"x")
            }
        };
        write(7).unwrap();
        let mark = home.path().join(".data.fence");
        let good = fs::read(&mark).unwrap();
        let mut flipped = good.clone();
        flipped[20] ^= 1;
        let later = String::from_utf8(good.clone()).unwrap().replacen("fence 1", "fence 2", 1);
        for bad in [&b""[..], b"hello\n", &[0; 512], &good[..100], &flipped, later.as_bytes()] {
            fs::write(&mark, bad).unwrap();
            file.acknowledge();
            of_log.acknowledge();
            let error = write(9).unwrap_err();
            assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
            assert!(error.to_string().contains(".data.fence cannot be used"), "{error}");
            assert_eq!(fs::read(&mark).unwrap(), bad);
        }
        fs::remove_file(&mark).unwrap();
        symlink("elsewhere", &mark).unwrap();
        assert!(write(9).unwrap_err().to_string().contains("symbolic link"));
        assert!(!home.path().join("elsewhere").exists());
        fs::remove_file(&mark).unwrap();
        fs::write(home.path().join("precious"), &good).unwrap();
        fs::hard_link(home.path().join("precious"), &mark).unwrap();
        let error = write(9).unwrap_err();
        assert!(error.to_string().contains("it has 2 names"), "{error}");
        assert_eq!(fs::read(home.path().join("precious")).unwrap(), good);
    }
}

#[test]
fn a_log_that_another_program_has_changed_is_not_touched() {
    let home = home();
    let log = FencedLog::new(home.path().join("log"));
    log.append_blocking(&token(7), b"one\n").unwrap();
    for there in ["", "one", "one\nfrom elsewhere\n"] {
        fs::write(log.path(), there).unwrap();
        let error = log.append_blocking(&token(8), b"two\n").unwrap_err();
        assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("Nothing was cut off"), "{error}");
        assert_eq!(fs::read_to_string(log.path()).unwrap(), there);
    }
    fs::rename(log.path(), home.path().join("log.1")).unwrap();
    let error = log.append_blocking(&token(8), b"two\n").unwrap_err();
    assert!(error.to_string().contains("it is gone, and 4 bytes were appended"), "{error}");
    // The rotated log is continued on purpose.
    log.adopt_blocking(&token(8)).unwrap();
    assert_eq!(log.append_blocking(&token(8), b"two\n").unwrap(), 4);
    fs::hard_link(log.path(), home.path().join("second name")).unwrap();
    let error = log.append_blocking(&token(8), b"three\n").unwrap_err();
    assert!(error.to_string().contains("it has 2 names"), "{error}");
}

#[test]
fn appends_and_puts_of_many_megabytes_come_whole_from_a_reader() {
    let home = home();
    let (file, log) = (FencedFile::new(home.path().join("f")), FencedLog::new(home.path().join("l")));
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    file.put_from_blocking(&token(7), &bytes[..]).unwrap();
    log.append_blocking(&token(7), b"head").unwrap();
    assert_eq!(log.append_from_blocking(&token(7), &bytes[..]).unwrap(), 5_000_004);
    assert_eq!(log.append_blocking(&token(7), &bytes).unwrap(), 10_000_004);
    assert_eq!(log.append_blocking(&token(8), b"").unwrap(), 10_000_004, "nothing, under a new token");
    assert_eq!(fs::read(file.path()).unwrap(), bytes);
    assert_eq!(fs::read(log.path()).unwrap(), [&b"head"[..], &bytes, &bytes].concat());
    assert!(log.append_blocking(&token(7), b"late").unwrap_err().is_stale());
    assert_eq!(log.length_blocking().unwrap(), 10_000_004);

    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the pipe broke"))
        }
    }
    for error in [
        file.put_from_blocking(&token(8), Broken).unwrap_err(),
        log.append_from_blocking(&token(8), Broken).map(|_| ()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("the pipe broke"), "{error}");
    }
    assert_eq!(fs::read(file.path()).unwrap(), bytes);
    assert_eq!(names(file.path()).len(), 4, "{:?}", names(file.path()));
}

#[test]
fn a_put_keeps_the_permissions_and_a_new_file_has_those_of_any_new_file() {
    let home = home();
    let file = FencedFile::new(home.path().join("f"));
    file.put_blocking(&token(7), b"one").unwrap();
    fs::write(home.path().join("other"), "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(file.path()), mode(&home.path().join("other")));
    for wanted in [0o600, 0o644, 0o664, 0o444, 0o4755] {
        fs::set_permissions(file.path(), Permissions::from_mode(wanted)).unwrap();
        file.put_blocking(&token(7), b"two").unwrap();
        assert_eq!(mode(file.path()), wanted);
    }
}

const USER: u32 = 54_321;

#[test]
fn a_put_by_root_keeps_the_owner() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can give files away");
    }
    let home = home();
    let file = FencedFile::new(home.path().join("f"));
    fs::write(file.path(), "").unwrap();
    std::os::unix::fs::chown(file.path(), Some(USER), Some(USER)).unwrap();
    file.put_blocking(&token(7), b"one").unwrap();
    for path in [file.path(), &file.mark_path().unwrap()] {
        let status = fs::metadata(path).unwrap();
        assert_eq!((status.uid(), status.gid()), (USER, USER), "{}", path.display());
    }
}

#[test]
#[ignore = "a process of other tests"]
fn another_user() {
    let Ok(path) = std::env::var("TENURE_TEST_FENCED") else { return };
    // SAFETY: a plain call of the C library, for all threads; no code here depends on the user.
    assert_eq!(unsafe { libc::setresuid(USER, USER, USER) }, 0);
    let file = FencedFile::new(path);
    println!(
        "> {}",
        file.put_blocking(&token(9), b"x").map_or_else(|error| error.to_string(), |()| "Ok".into())
    );
}

#[test]
fn another_user_is_denied_in_words_and_leaves_nothing() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become another user");
    }
    let home = home();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    let as_user = |path: &Path| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "another_user", "--ignored", "--nocapture"])
            .env("TENURE_TEST_FENCED", path)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        said.lines().find_map(|line| line.split_once("> ")).map(|(_, said)| said.to_owned()).unwrap_or(said)
    };
    let file = FencedFile::new(home.path().join("f"));
    file.put_blocking(&token(7), b"one").unwrap();
    let said = as_user(file.path());
    assert!(said.contains("cannot create") && said.contains("Run as the owner"), "{said}");
    // In a directory where every user may create files, the file of root cannot be given to its new content.
    fs::set_permissions(home.path(), Permissions::from_mode(0o1777)).unwrap();
    let said = as_user(file.path());
    assert!(said.contains("belongs to user 0") && said.contains("Run as its owner"), "{said}");
    assert_eq!(fs::read(file.path()).unwrap(), b"one");
    assert_eq!(names(file.path()).len(), 2, "{:?}", names(file.path()));
    // A mark that another user has put there is not believed.
    let planted = home.path().join(".g.fence");
    fs::copy(file.mark_path().unwrap(), &planted).unwrap();
    std::os::unix::fs::chown(&planted, Some(USER), Some(USER)).unwrap();
    let error = FencedFile::new(home.path().join("g")).put_blocking(&token(9), b"x").unwrap_err();
    assert!(error.to_string().contains(&format!("belongs to user {USER}")), "{error}");
}

#[test]
fn every_local_file_system_fences_and_every_other_one_is_refused() {
    Mounted::each(&FileSystem::ALL, |mounted| {
        let path = mounted.path().join("f");
        let (file, log) = (FencedFile::new(&path), FencedLog::new(mounted.path().join("l")));
        if mounted.kind().is_fuse() {
            return is_refused(&path, ErrorKind::Unsupported, &["fuse", "not known to be local"]);
        }
        for number in 7..20 {
            file.put_blocking(&token(number), b"one").unwrap();
            log.append_blocking(&token(number), b"one\n").unwrap();
            assert!(file.put_blocking(&token(number - 1), b"late").unwrap_err().is_stale());
            assert!(log.append_blocking(&token(number - 1), b"late").unwrap_err().is_stale());
        }
        assert_eq!(fs::read(log.path()).unwrap(), b"one\n".repeat(13), "{}", mounted.kind().name());
    });
}

/// The real error of the kernel, on a file system without space.
#[test]
fn a_full_disk_loses_nothing_and_takes_writes_again_later() {
    let Some(mounted) = Mounted::new(FileSystem::Tmpfs) else { return };
    let here = mounted.path();
    assert!(Command::new("mount").args(["-o", "remount,size=2m"]).arg(here).status().unwrap().success());
    let (file, log) = (FencedFile::new(here.join("f")), FencedLog::new(here.join("l")));
    file.put_blocking(&token(7), b"one\n").unwrap();
    log.append_blocking(&token(7), b"one\n").unwrap();
    let much = vec![b'x'; 4 << 20];
    for error in [
        file.put_blocking(&token(8), &much).unwrap_err(),
        log.append_blocking(&token(8), &much).map(|_| ()).unwrap_err(),
        log.append_from_blocking(&token(8), &much[..]).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, FenceError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("Free some space"), "{error}");
    }
    assert_eq!(fs::read(file.path()).unwrap(), b"one\n");
    assert_eq!(fs::read(log.path()).unwrap(), b"one\n");
    // What an operator appends now is not the rest of the failed append.
    fs::write(log.path(), "one\nby hand\n").unwrap();
    let error = log.append_blocking(&token(8), b"two\n").unwrap_err();
    assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
    assert_eq!(fs::read(log.path()).unwrap(), b"one\nby hand\n");
    fs::write(log.path(), "one\n").unwrap();
    file.put_blocking(&token(8), b"two\n").unwrap();
    assert_eq!(log.append_blocking(&token(8), b"two\n").unwrap(), 8);
    assert_eq!(names(file.path()).len(), 4, "{:?}", names(file.path()));
}

#[test]
fn a_file_that_is_a_mount_of_its_own_is_refused() {
    let Some(mounted) = Mounted::new(FileSystem::Tmpfs) else { return };
    let (inner, outer) = (mounted.path().join("inner"), mounted.path().join("outer"));
    fs::write(&inner, "").unwrap();
    fs::write(&outer, "").unwrap();
    let bind = Command::new("mount").arg("--bind").args([&inner, &outer]).status().unwrap();
    assert!(bind.success());
    is_refused(&outer, ErrorKind::Unsupported, &["a mount of its own", "mount its directory"]);
    assert!(Command::new("umount").arg(&outer).status().unwrap().success());
    FencedLog::new(&outer).append_blocking(&token(7), b"x").unwrap();
}

#[test]
fn a_lock_that_another_program_keeps_is_told_after_a_bounded_wait() {
    let home = home();
    let file = FencedFile::new(home.path().join("f")).lock_wait(Duration::from_millis(50));
    file.put_blocking(&token(7), b"one").unwrap();
    let mark = fs::File::open(file.mark_path().unwrap()).unwrap();
    rustix::fs::flock(&mark, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = tenure::Error::from(file.put_blocking(&token(8), b"two").unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    for part in ["locked for more than 50ms", &std::process::id().to_string()] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(file.mark_blocking().unwrap(), Some(token(7)), "a look needs no lock");
    drop(mark);
    file.put_blocking(&token(8), b"two").unwrap();
}
