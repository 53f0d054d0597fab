use std::future::poll_fn;
use std::task::Poll;

/// Lets every other task run once: the moment between a check and the write.
pub(super) async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
