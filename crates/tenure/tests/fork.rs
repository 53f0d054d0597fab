//! A forked copy of the process does not believe that it holds the lease.
#![expect(unsafe_code, reason = "there is no safe fork")]

use futures_util::FutureExt;
use tenure::store::Memory;
use tenure::{Coordinator, ErrorKind, Lost};

#[test]
fn a_forked_copy_of_the_holder_does_not_believe_and_the_holder_continues() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let coordinator = runtime.block_on(Coordinator::connect(Memory::new())).unwrap();
    let lease = runtime.block_on(coordinator.lease("k").unwrap().acquire()).unwrap();
    let set = runtime.block_on(coordinator.all_of(["x", "y"]).unwrap().acquire()).unwrap();
    assert!(lease.check().is_ok() && set.check().is_ok());
    // SAFETY: the child only reads atomics and the clock, and leaves by _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let believes = lease.check().is_ok() || !lease.remaining().is_zero();
        let believes = believes || set.check().is_ok() || !set.remaining().is_zero();
        let lost = set.lost().now_or_never();
        let believes = believes || lost.is_none_or(|loss| loss.why != Lost::Forked);
        drop((lease, set));
        // The child has no keeper that could answer, so the call returns at once.
        let asked = std::pin::pin!(coordinator.lease("other").unwrap().acquire());
        let answer = asked.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        let believes = believes || !matches!(answer, std::task::Poll::Ready(Err(_)));
        // SAFETY: nothing of the parent's may be torn down in the child.
        unsafe { libc::_exit(i32::from(believes)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child forked above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child crashed: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "the copy believed that it held the lease");
    assert!(lease.check().is_ok() && set.check().is_ok(), "the holder itself still does");
    runtime.block_on(lease.release()).unwrap();
    assert_eq!(lease.check().unwrap_err().kind(), ErrorKind::Lost);
}
