//! Tenure renews a held lease although other programs have used up a limit of the machine.
#![expect(unsafe_code, reason = "there is no safe way to become another user")]

mod file_support;

use std::time::Duration;

use tenure::Coordinator;
use tenure::clock::{BootClock, Clock};
use tenure::store::File;

use file_support::{DIRECTORY, Puppet, Scratch, block_on, shell, skipped};

/// A user without other processes.
const USER: u32 = 54_321;

/// Longer than the time after which idle threads may exit.
const IDLE: Duration = Duration::from_millis(5_500);

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    // Root has no limit on threads.
    // SAFETY: a plain call of the C library, for all threads; no code here depends on the user.
    assert_eq!(unsafe { libc::setresuid(USER, USER, USER) }, 0);
    block_on(async {
        let coordinator = Coordinator::connect(File::open(directory).unwrap()).await.unwrap();
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
fn a_long_idle_lease_is_renewed_even_if_no_thread_can_be_started() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become another user");
    }
    let scratch = Scratch::new("limits");
    std::fs::create_dir(&scratch.0).unwrap();
    let directory = scratch.0.display();
    assert!(shell(&format!("chmod 700 {directory} && chown {USER} {directory}")));
    let mut puppet = Puppet::start(&scratch.0);
    assert_eq!(puppet.worker, "at the limit", "the test is void");
    assert_eq!(puppet.answer().unwrap(), "Ok(())");
}
