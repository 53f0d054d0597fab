//! A forked copy of the process believes nothing.
#![expect(unsafe_code, reason = "there is no safe fork")]

use tenure::store::Memory;
use tenure::{Coordinator, Kind};

#[test]
fn a_forked_copy_of_the_holder_believes_nothing_while_the_holder_goes_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lease = runtime.block_on(async {
        let coordinator = Coordinator::connect(Memory::new()).await.unwrap();
        coordinator.lease("k").unwrap().acquire().await.unwrap()
    });
    assert!(lease.check().is_ok());
    // SAFETY: the child only looks at atomics and the clock, and leaves by _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let believes = lease.check().is_ok() || !lease.remaining().is_zero();
        drop(lease);
        // SAFETY: nothing of the parent's may be torn down in the child.
        unsafe { libc::_exit(i32::from(believes)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child crashed: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "the copy believed that it held the lease");
    assert!(lease.check().is_ok(), "the holder itself still does");
    runtime.block_on(lease.release()).unwrap();
    assert_eq!(lease.check().unwrap_err().kind(), Kind::Lost);
}
