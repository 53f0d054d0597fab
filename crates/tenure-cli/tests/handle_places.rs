//! Places for the handle file of a script: only where no other user can substitute the handle of a different lease.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use support::{Did, Home, is_root, refused, shell, skipped};

/// Uid of the other user.
const OTHER_USER: u32 = 65534;

/// Runs a shell command as the other user.
fn as_other_user(command: &str) -> bool {
    shell(&format!("setpriv --reuid={OTHER_USER} --regid={OTHER_USER} --clear-groups sh -c '{command}'"))
}

fn directory(home: &Home, name: &str, mode: u32) -> PathBuf {
    let path = home.0.join(name);
    fs::create_dir_all(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn on_file(home: &Home, args: &[&str], file: &Path) -> Did {
    home.tenure(&[args, &["--file", file.to_str().unwrap()]].concat())
}

/// Asserts that every command fails on this file with these words, and that the victim keeps its lease.
#[track_caller]
fn assert_refused(home: &Home, file: &Path, code: i32, words: &[&str]) {
    for args in [&["release"][..], &["renew"], &["acquire", "another"]] {
        let did = on_file(home, args, file);
        assert!(did.code == code, "{args:?} on {}: {did:?}", file.display());
        refused(&did, code, words);
        assert_eq!(home.tenure(&["status", "victim"]).code, 0, "{args:?} ended the lease of the victim");
        assert_eq!(home.tenure(&["status", "another"]).code, 1, "{args:?} took a lease");
    }
}

/// A home with a victim, whose handle is in its own directory.
fn with_victim() -> (Home, PathBuf) {
    let home = Home::new("places");
    let own = directory(&home, "own", 0o700).join("victim");
    assert_eq!(on_file(&home, &["acquire", "victim", "--ttl", "600s"], &own).code, 0);
    (home, own)
}

#[test]
fn a_link_of_another_user_in_a_sticky_directory_ends_no_lease() {
    if !is_root() {
        return skipped("only root can be two users");
    }
    let (home, victim) = with_victim();
    shell(&format!("chmod 755 {}", home.0.display()));
    let sticky = directory(&home, "sticky", 0o1777);
    let (link, victim) = (sticky.join("lease"), victim.to_str().unwrap().to_owned());
    assert!(as_other_user(&format!("ln -s {victim} {}", link.display())));
    assert_eq!(fs::symlink_metadata(&link).unwrap().uid(), OTHER_USER);
    assert_refused(&home, &link, 78, &["sticky/lease is a symbolic link"]);
    assert_eq!(on_file(&home, &["release"], Path::new(&victim)).code, 0, "it is the very handle");
}

#[test]
fn a_directory_of_another_user_is_refused_and_so_is_their_link_on_the_path() {
    if !is_root() {
        return skipped("only root can be two users");
    }
    let (home, victim) = with_victim();
    shell(&format!("chmod 755 {}", home.0.display()));
    let sticky = directory(&home, "sticky", 0o1777);
    assert!(as_other_user(&format!(
        "mkdir -p {0}/theirs/below; ln -s {1} {0}/way",
        sticky.display(),
        home.0.join("own").display()
    )));
    let owned = format!("belongs to user {OTHER_USER}, and this is user 0");
    for file in ["theirs/lease", "theirs/below/lease", "theirs/../victim"] {
        assert_refused(
            &home,
            &sticky.join(file),
            78,
            &["not a safe place for a handle", "sticky/theirs", &owned],
        );
    }
    let linked = format!("sticky/way is a symbolic link of user {OTHER_USER}");
    assert_refused(&home, &sticky.join("way/victim"), 78, &[&linked, "your own directory"]);
    // Also through a link of the caller's own, and from a working directory inside it.
    symlink(sticky.join("theirs"), home.0.join("mine")).unwrap();
    assert_refused(&home, &home.0.join("mine/lease"), 78, &["sticky/theirs", &owned]);
    let within =
        support::did(home.command(&["release", "--file", "lease"]).current_dir(sticky.join("theirs")));
    refused(&within, 78, &["sticky/theirs", &owned]);
    assert_eq!(on_file(&home, &["release"], &victim).code, 0);
}

#[test]
fn a_directory_whose_owner_a_user_namespace_hides_is_refused() {
    if !is_root() {
        return skipped("only root can be two users");
    }
    let (home, victim) = with_victim();
    shell(&format!("chmod 755 {}", home.0.display()));
    let theirs = directory(&home, "theirs", 0o755);
    symlink(home.0.join("own"), theirs.join("link")).unwrap();
    lchown(theirs.join("link"), Some(1234), Some(1234)).unwrap();
    chown(&theirs, Some(1234), Some(1234)).unwrap();
    let file = theirs.join("link/victim");
    // Only root is mapped: every other owner appears as the overflow number.
    let plain = home.command(&["release", "--file", file.to_str().unwrap()]);
    let mut inside = std::process::Command::new("unshare");
    inside.args(["--user", "--map-root-user"]).arg(plain.get_program()).args(plain.get_args());
    let variables: Vec<_> = plain.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
    refused(&support::did(inside.env_clear().envs(variables)), 78, &["belongs to user 65534"]);
    assert_eq!(on_file(&home, &["release"], &victim).code, 0, "it is still held");
}

#[test]
fn a_file_of_another_user_in_a_sticky_directory_is_neither_used_nor_replaced() {
    if !is_root() {
        return skipped("only root can be two users");
    }
    let (home, victim) = with_victim();
    let sticky = directory(&home, "sticky", 0o1777);
    let theirs = sticky.join("lease");
    fs::copy(&victim, &theirs).unwrap();
    chown(&theirs, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    assert_refused(&home, &theirs, 78, &[&format!("belongs to user {OTHER_USER}")]);
    assert_eq!(fs::metadata(&theirs).unwrap().uid(), OTHER_USER);
}

#[test]
fn a_sticky_directory_of_root_and_links_of_the_caller_on_the_path_are_accepted() {
    let home = Home::new("places");
    let sticky = directory(&home, "sticky", 0o1777);
    let way = home.0.join("way");
    symlink("sticky", &way).unwrap();
    if is_root() {
        lchown(&way, Some(0), Some(0)).unwrap();
    }
    for file in [sticky.join("lease"), way.join("lease"), home.0.join("sticky/../way/../sticky/./lease")] {
        assert_eq!(on_file(&home, &["acquire", "job"], &file).code, 0, "{}", file.display());
        on_file(&home, &["renew"], &file).answered(0, "");
        on_file(&home, &["release"], &file).answered(0, "");
        assert_eq!(fs::read_dir(&sticky).unwrap().count(), 0, "nothing is left");
    }
    let here = |args: &[&str]| support::did(home.command(args).current_dir(&sticky));
    assert_eq!(here(&["acquire", "job", "--file", "lease"]).code, 0);
    here(&["release", "--file", "./lease"]).answered(0, "");
}

#[test]
fn a_directory_in_which_others_may_rename_is_refused() {
    let (home, _) = with_victim();
    let open = directory(&home, "open", 0o777);
    assert_refused(&home, &open.join("lease"), 78, &["every user may replace files in", "/open."]);
    let below = directory(&home, "open/below", 0o700);
    assert_refused(&home, &below.join("lease"), 78, &["every user may replace files in", "/open."]);
    if is_root() {
        let group = directory(&home, "group", 0o775);
        chown(&group, None, Some(1234)).unwrap();
        assert_refused(&home, &group.join("lease"), 78, &["group 1234 may replace files in", "/group."]);
        chown(&group, None, Some(0)).unwrap();
        let file = group.join("lease");
        assert_eq!(on_file(&home, &["acquire", "job"], &file).code, 0, "root's own group");
        on_file(&home, &["release"], &file).answered(0, "");
    }
}

#[test]
fn a_handle_file_with_two_hard_links_is_refused() {
    let (home, victim) = with_victim();
    let second = home.0.join("second");
    fs::hard_link(&victim, &second).unwrap();
    assert_refused(&home, &second, 78, &["has 2 names", "remove the others"]);
    assert_eq!(on_file(&home, &["release"], &victim).code, 78);
    fs::remove_file(&second).unwrap();
    assert_eq!(on_file(&home, &["release"], &victim).code, 0);
}

#[test]
fn only_a_regular_file_is_accepted_and_a_pipe_belongs_on_standard_input() {
    let (home, victim) = with_victim();
    let fifo = home.0.join("fifo");
    assert!(shell(&format!("mkfifo {}", fifo.display())));
    let socket = home.0.join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [&fifo, &socket, &home.0.join("own"), Path::new("/dev/null")] {
        for verb in ["renew", "release"] {
            refused(&on_file(&home, &[verb], path), 64, &["is not a file", "standard input"]);
        }
        refused(&on_file(&home, &["acquire", "another"], path), 64, &["exists and is not a handle"]);
    }
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let at = home.0.display();
    let bash = |script: &str| {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &format!("export HOME={at}; {script}")]);
        support::did(&mut command)
    };
    let victim = victim.display();
    for from in
        [format!("<(cat {victim})"), format!("/dev/stdin <{victim}"), format!("/proc/self/fd/0 <{victim}")]
    {
        refused(
            &bash(&format!("{tenure} release --file {from}")),
            78,
            &["is a symbolic link", "standard input"],
        );
    }
    assert_eq!(home.tenure(&["status", "victim"]).code, 0);
    bash(&format!("{tenure} release <{victim}")).answered(0, "");
}
