//! A held lease is renewed although the machine gives no more of what others use up.
#![expect(unsafe_code, reason = "there is no safe way to become another user")]

mod file_support;

use std::time::Duration;

use tenure::Coordinator;
use tenure::clock::{BootClock, Clock};
use tenure::store::File;

use file_support::{FOLDER, Puppet, Scratch, block_on, shell, skipped};

/// A user who has no other processes.
const USER: u32 = 54_321;

/// More than the time after which threads that have nothing to do may go.
const IDLE: Duration = Duration::from_millis(5_500);

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    // Root may have as many threads as it likes.
    // SAFETY: a plain call of the C library, for all threads; nothing here rests on who the user is.
    assert_eq!(unsafe { libc::setresuid(USER, USER, USER) }, 0);
    block_on(async {
        let coordinator = Coordinator::connect(File::open(folder).unwrap()).await.unwrap();
        let request = coordinator.lease("k").unwrap().ttl(Duration::from_secs(60)).manual();
        let lease = request.acquire().await.unwrap();
        let clock = BootClock::new();
        clock.sleep_until(clock.now() + IDLE).await;
        let limit = rustix::process::Rlimit { current: Some(1), maximum: Some(1) };
        rustix::process::setrlimit(rustix::process::Resource::Nproc, limit).unwrap();
        #[expect(clippy::disallowed_methods, reason = "it must fail")]
        let thread = std::thread::Builder::new().spawn(|| ());
        println!("> ready {}", if thread.is_ok() { "without a limit" } else { "at the limit" });
        println!("> {:?}", lease.renew().await.map_err(|error| error.to_string()));
    });
}

#[test]
fn a_lease_that_was_idle_for_long_is_renewed_though_no_thread_can_be_started() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become another user");
    }
    let scratch = Scratch::new("limits");
    std::fs::create_dir(&scratch.0).unwrap();
    let folder = scratch.0.display();
    assert!(shell(&format!("chmod 700 {folder} && chown {USER} {folder}")));
    let mut puppet = Puppet::start(&scratch.0);
    assert_eq!(puppet.worker, "at the limit", "the test is void");
    assert_eq!(puppet.answer().unwrap(), "Ok(())");
}
