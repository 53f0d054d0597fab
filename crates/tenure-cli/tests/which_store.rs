//! The choice of the store, and the messages when there is none.

mod support;

use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use support::{Did, Home, did, hold, is_root, process, shell, skipped};

/// The store that a command used.
#[track_caller]
fn looked_at(did: &Did) -> String {
    did.json()["store"].as_str().unwrap().to_owned()
}

fn ls(home: &Home) -> Command {
    home.command(&["ls", "--json"])
}

#[test]
fn the_command_line_wins_over_the_variable_over_the_configuration_over_the_default() {
    let home = Home::new("order");
    assert_eq!(looked_at(&did(&mut ls(&home))), home.url());
    home.write(".config/tenure/config.toml", "# ours\nstore = \"file:///from/config\"\n");
    assert_eq!(looked_at(&did(&mut ls(&home))), "file:///from/config");
    assert_eq!(
        looked_at(&did(ls(&home).env("TENURE_STORE", "file:///from/variable"))),
        "file:///from/variable"
    );
    let mut command = ls(&home);
    command.env("TENURE_STORE", "file:///from/variable").args(["--store", "file:///from/flag?accept=nfs"]);
    assert_eq!(looked_at(&did(&mut command)), "file:///from/flag?accept=nfs");
    assert_eq!(looked_at(&did(ls(&home).env("TENURE_STORE", ""))), "file:///from/config", "empty is unset");
}

#[test]
fn the_configuration_is_the_first_file_that_exists() {
    let home = Home::new("config");
    home.write(".config/tenure/config.toml", "store = 'file:///home-config'");
    home.write("xdg/tenure/config.toml", "store = 'file:///xdg'");
    home.write("named.toml", "store = 'file:///named'");
    let xdg = home.0.join("xdg");
    assert_eq!(looked_at(&did(&mut ls(&home))), "file:///home-config");
    assert_eq!(looked_at(&did(ls(&home).env("XDG_CONFIG_HOME", &xdg))), "file:///xdg");
    assert_eq!(looked_at(&did(ls(&home).env("XDG_CONFIG_HOME", "xdg"))), "file:///home-config");
    let mut named = ls(&home);
    named.env("XDG_CONFIG_HOME", &xdg).env("TENURE_CONFIG", home.0.join("named.toml"));
    assert_eq!(looked_at(&did(&mut named)), "file:///named");
    home.write("empty.toml", "");
    let did = did(ls(&home).env("TENURE_CONFIG", home.0.join("empty.toml")));
    assert_eq!(looked_at(&did), home.url(), "a configuration need not name a store");
}

#[test]
fn an_invalid_configuration_is_not_ignored() {
    let home = Home::new("wrong-config");
    let path = home.0.join(".config/tenure/config.toml");
    let shown = path.display();
    for (text, what) in [
        (
            "\nstor = 'file:///x'",
            "line 2: unknown field `stor`, expected `store`. Its only field is store = \"file:///path\"",
        ),
        (
            "store = 7",
            "line 1: invalid type: integer `7`, expected a string. Its only field is store = \"file:///path\"",
        ),
    ] {
        home.write(".config/tenure/config.toml", text);
        home.tenure(&["ls"]).failed(78, &format!("the configuration file {shown} is not used: {what}"));
    }
    home.write(".config/tenure/config.toml", "store = '/var/lib/jobs'");
    home.tenure(&["ls"]).failed(
        78,
        &format!(
            "store in {shown}: \"/var/lib/jobs\" is a path, but a store needs a URL: write file:///var/lib/jobs"
        ),
    );
    // An explicit store makes the configuration irrelevant.
    home.tenure(&["--store", "file:///nowhere/x", "status", "x"]).stands(1, "x: free");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).unwrap();
    home.tenure(&["ls"]).failed(
        78,
        &format!(
            "the configuration file {shown} is not used: other users may write to it, and could redirect the leases: \
             remove that permission (chmod go-w {shown})"
        ),
    );
    if is_root() {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(shell(&format!("chown 12345 {shown}")));
        home.tenure(&["ls"]).failed(
            78,
            &format!(
                "the configuration file {shown} is not used: it belongs to user 12345, and this is user 0: use a file \
                 of your own"
            ),
        );
    }
    let named = did(home.command(&["ls"]).env("TENURE_CONFIG", "/nowhere/at-all.toml"));
    named.failed(
        78,
        "the configuration file /nowhere/at-all.toml is not used: TENURE_CONFIG names it, but it does not exist: \
         create it, or unset TENURE_CONFIG",
    );
    home.write("bytes.toml", b"store = '\xff'");
    let bytes = home.0.join("bytes.toml");
    did(home.command(&["ls"]).env("TENURE_CONFIG", &bytes)).failed(
        78,
        &format!(
            "the configuration file {} is not used: it cannot be read: stream did not contain valid UTF-8. Make it \
             readable, or name the store by --store or TENURE_STORE",
            bytes.display()
        ),
    );
    // A pipe without a writer does not block it.
    let pipe = home.0.join("pipe");
    assert!(shell(&format!("mkfifo {}", pipe.display())));
    assert_eq!(did(home.command(&["ls"]).env("TENURE_CONFIG", &pipe)).code, 78);
    let named = did(home.command(&["ls"]).env("TENURE_CONFIG", &home.0));
    named.failed(
        78,
        &format!(
            "the configuration file {} is not used: it is not a short text file, such as store = \"file:///path\"",
            home.0.display()
        ),
    );
}

#[test]
fn an_invalid_url_is_an_error_that_names_its_origin() {
    let home = Home::new("wrong-url");
    home.tenure(&["--store", "leases", "ls"])
        .failed(64, "--store: \"leases\" is not the URL of a store: write it like file:///path");
    home.tenure(&["--store", "", "ls"])
        .failed(64, "--store: the URL of a store is empty: write it like file:///path");
    let known = "file:///path, redis://host:6379, s3://bucket/prefix, az://container/prefix, gs://bucket/prefix and postgres://role@host/database";
    did(home.command(&["ls"]).env("TENURE_STORE", "etcd://host/prefix")).failed(
        64,
        &format!("TENURE_STORE: etcd: stores are not built into this version, which has {known}"),
    );
    let bytes = std::ffi::OsString::from_vec(b"file:///\xff".to_vec());
    did(home.command(&["ls"]).env("TENURE_STORE", bytes)).failed(
        64,
        "TENURE_STORE is not text: \"file:///\\xFF\". Write other bytes as %XX, as in file:///x%FF",
    );
}

#[test]
fn a_memory_store_is_refused() {
    let home = Home::new("memory");
    for url in ["memory:", "MEMORY:jobs"] {
        home.tenure(&["--store", url, "status", "x"]).failed(
            64,
            "--store: memory: ends with this command, so no other process would see the lease: name a persistent \
             store, such as file:///var/lib/tenure",
        );
    }
}

#[test]
fn the_default_store_is_in_the_users_state_directory() {
    let home = Home::new("state");
    let state = home.0.join("state");
    let expected = format!("file://{}/tenure", state.display());
    assert_eq!(looked_at(&did(ls(&home).env("XDG_STATE_HOME", &state))), expected);
    for unset in ["", "relative/state"] {
        assert_eq!(looked_at(&did(ls(&home).env("XDG_STATE_HOME", unset))), home.url());
    }
}

#[test]
fn without_home_the_password_database_is_used_so_that_cron_and_a_shell_agree() {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap();
    let Some(user) = user.filter(|user| user.dir.is_dir()) else {
        return skipped("this user has no home directory");
    };
    let home = Home::new("no-home");
    let expected = format!("file://{}/.local/state/tenure", user.dir.display());
    for unset in [None, Some(""), Some("relative/home")] {
        let mut command = ls(&home);
        match unset {
            None => command.env_remove("HOME"),
            Some(text) => command.env("HOME", text),
        };
        assert_eq!(looked_at(&did(&mut command)), expected, "{unset:?}");
    }
}

/// The command as another user, who may have no access to the directory of the build.
fn as_user(home: &Home, user: u32, args: &[&str]) -> Option<Command> {
    if !is_root() {
        skipped("only root can act as another user");
        return None;
    }
    let mut command = home.command(args);
    command.uid(user).gid(user).current_dir("/");
    if let Err(error) =
        Command::new(env!("CARGO_BIN_EXE_tenure")).arg("--version").uid(user).gid(user).output()
    {
        skipped(&format!("another user cannot run what is built here: {error}"));
        return None;
    }
    Some(command)
}

#[test]
fn a_user_without_a_home_must_name_a_store() {
    let home = Home::new("homeless");
    if let Some(mut command) = as_user(&home, 54_321, &["status", "x"]) {
        did(command.env_remove("HOME")).failed(
            78,
            "there is no default store for this user, because HOME is not set and the password database has no \
             home for user 54321: name a store with --store file:///path, or in TENURE_STORE",
        );
    }
    did(home.command(&["status", "x"]).env("HOME", "/nonexistent")).failed(
        78,
        "there is no default store for this user, because the home directory /nonexistent does not exist: name a \
         store with --store file:///path, or in TENURE_STORE",
    );
}

#[test]
fn the_home_of_another_user_after_sudo_is_refused_with_an_explanation() {
    let home = Home::new("sudo");
    if !is_root() {
        return skipped("only root can give a directory away");
    }
    assert!(shell(&format!("chown 12345 {}", home.0.display())));
    home.tenure(&["status", "x"]).failed(
        77,
        &format!(
            "the store would be in the home directory of another user: HOME is {}, which belongs to user 12345, and \
             this is user 0. After sudo, use sudo -H; or name a store with --store file:///path",
            home.0.display()
        ),
    );
    // If it is named explicitly, the store itself says what can be accepted.
    let url = home.url();
    let named = home.tenure(&["--store", &url, "status", "x"]);
    assert_eq!(named.code, 77);
    assert!(named.err.contains("?accept=foreign-owner"), "{}", named.err);
    let accepted = format!("{url}?accept=foreign-owner");
    home.tenure(&["--store", &accepted, "status", "x"]).stands(1, "x: free");
}

#[test]
fn an_inaccessible_directory_is_unavailable() {
    let home = Home::below(Path::new("/tmp"), "denied");
    std::fs::set_permissions(&home.0, std::fs::Permissions::from_mode(0o700)).unwrap();
    let url = home.url();
    let Some(mut command) = as_user(&home, 54_321, &["--store", &url, "ls"]) else { return };
    let did = did(&mut command);
    assert_eq!(did.code, 69, "{}", did.err);
    for words in ["Permission denied", "Run as its owner", "to search the directories above it"] {
        assert!(did.err.contains(words), "{words:?} is missing: {}", did.err);
    }
}

#[test]
fn a_file_system_that_is_not_local_is_refused() {
    let home = Home::new("proc");
    let did = home.tenure(&["--store", "file:///proc/self/tenure", "ls"]);
    assert_eq!(did.code, 77, "{}", did.err);
    assert!(did.err.contains("?accept=proc"), "{}", did.err);
}

#[test]
fn a_directory_with_other_files_is_not_a_store() {
    let home = Home::new("other");
    home.write("notes/a.txt", "mine");
    let directory = home.0.join("notes");
    let url = format!("file://{}", directory.display());
    home.tenure(&["--store", &url, "ls"]).failed(
        64,
        &format!(
            "{0} is not a store and not empty (\"a.txt\" is in it): name an empty or new directory, for example \
             {0}/tenure",
            directory.display()
        ),
    );
}

#[test]
fn a_store_in_a_directory_with_any_name_is_found_by_its_url() {
    let home = Home::new("spaces and %41");
    let lease = hold(&process(&home, "me"), "k", 60_000);
    let did = home.tenure(&["--store", &home.url(), "status", "k"]);
    assert!(did.out.contains(&format!("token {}", lease.token())), "{did:?}");
}
