//! Reports go to a subscriber from the moment it exists. One test, because a process has one subscriber.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use tenure::Coordinator;
use tenure::store::Memory;

use support::subscriber::OnEvent;

static HEARD: AtomicUsize = AtomicUsize::new(0);

/// Counts a report.
fn hear() {
    HEARD.fetch_add(1, Ordering::SeqCst);
}

fn has_a_reporter() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok())
        .any(|name| name.trim() == "tenure-reporter")
}

#[tokio::test]
async fn without_a_subscriber_there_is_no_thread_and_a_later_subscriber_gets_reports() {
    let coordinator = Coordinator::connect(Memory::new()).await.unwrap();
    let turn = async || coordinator.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    turn().await;
    assert!(!has_a_reporter());
    tracing::subscriber::set_global_default(OnEvent(hear)).unwrap();
    turn().await;
    // Granted, lost, left, and an attempt for each write.
    for _ in 0..10_000 {
        if HEARD.load(Ordering::SeqCst) >= 5 {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "another thread needs real time")]
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("only {} reports were heard", HEARD.load(Ordering::SeqCst));
}
