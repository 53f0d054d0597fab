//! The directory of the leases is removed, moved or mounted over while a command runs under one of them.

mod run_support;

use std::time::Duration;

use run_support::World;
use tenure::clock::{BootClock, Clock};

/// "At once", on a machine that is busy with other tests. The next renewal is twenty minutes away.
const AT_ONCE: Duration = Duration::from_secs(5);

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_command_whose_store_is_removed_moved_or_mounted_over_stops_at_once_despite_a_ttl_of_an_hour() {
    let harms = [
        ("rm -rf leases", "its "),
        ("mv leases away", "its store was removed, moved or replaced"),
        ("mv ../home ../home.away", "its store was removed, moved or replaced"),
        ("mount -t tmpfs tenure leases", "its store was removed, moved or replaced"),
    ];
    if !rustix::process::geteuid().is_root() {
        run_support::skipped("only root can mount");
    }
    for (harm, why) in harms
        .into_iter()
        .filter(|(harm, _)| !harm.starts_with("mount") || rustix::process::geteuid().is_root())
    {
        let outer = World::new("gone");
        std::fs::create_dir(outer.path("home")).unwrap();
        let (home, away) = (outer.path("home"), outer.path("home.away"));
        std::fs::create_dir(home.join("leases")).unwrap();
        std::fs::set_permissions(home.join("leases"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .unwrap();
        let url = tenure::store::File::url_of(&home.join("leases"));
        let _unmount = Unmount(home.join("leases"));
        let mut command = outer.command(env!("CARGO_BIN_EXE_tenure"));
        command.args([
            "--store",
            &url,
            "run",
            "x",
            "--ttl",
            "1h",
            "--",
            "sh",
            "-c",
            "echo $$ >began; sleep 60",
        ]);
        let started = outer.start(command);
        let child = outer.told_pid("began");
        let mut shell = std::process::Command::new("sh");
        assert!(shell.args(["-c", harm]).current_dir(&home).status().unwrap().success(), "{harm}");
        let began = BootClock::new().now();
        let ran = started.end();
        let took = BootClock::new().now().since(began);
        println!("{harm}: {took:?}: {}", ran.err);
        assert_eq!(ran.code, 76, "{harm}: {ran:?}");
        assert!(took < AT_ONCE, "{harm}: {took:?}");
        assert!(ran.err.contains(why) && ran.err.contains("run it again"), "{harm}: {}", ran.err);
        assert!(child.is_dead(), "{harm}");
        let _ = std::fs::remove_dir_all(away);
    }
}
