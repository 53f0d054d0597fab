//! A user's executor that is blocked for five ttls does not cost the lease.

mod support;

use std::time::Duration;

use tenure::store::Memory;
use tenure::{Coordinator, Lease};

use support::tcp::{TcpServer, TcpStore};

const TTL: Duration = Duration::from_secs(1);

/// Blocks the only thread of this executor, as users' blocking code does.
#[expect(clippy::disallowed_methods, reason = "that is what starves an executor")]
fn block_for(span: Duration) {
    std::thread::sleep(span);
}

async fn assert_renewed_while_blocked(lease: &Lease, renewals: impl Fn() -> u64) {
    let before = renewals();
    for _ in 0..5 {
        block_for(TTL);
        assert!(lease.check().is_ok(), "the keeper renews on its own thread");
    }
    assert!(renewals() - before >= 14, "five ttls hold fifteen renewals");
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn a_blocked_executor_does_not_cost_a_lease_on_the_memory_store() {
    let memory = Memory::new();
    let coordinator = Coordinator::connect(memory.clone()).await.unwrap();
    let lease = coordinator.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    assert_renewed_while_blocked(&lease, || memory.calls().puts).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_blocked_executor_does_not_cost_a_lease_behind_a_tcp_connection_made_at_connect() {
    let server = TcpServer::start();
    let address = server.address();
    let connect = move || TcpStore::connect(address);
    let coordinator = Coordinator::builder().connect_with(connect).await.unwrap();
    let lease = coordinator.lease("k").unwrap().ttl(TTL).without_witness().acquire().await.unwrap();
    assert_renewed_while_blocked(&lease, || server.memory().calls().puts).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_server_that_stops_costs_the_lease_in_time_and_a_new_connect_says_why() {
    let server = TcpServer::start();
    let address = server.address();
    let coordinator = Coordinator::builder().connect_with(move || TcpStore::connect(address)).await.unwrap();
    let lease = coordinator.lease("k").unwrap().ttl(TTL).without_witness().acquire().await.unwrap();
    drop(server);
    assert_eq!(lease.lost().await, tenure::Lost::Expired);
    let error = Coordinator::builder().connect_with(move || TcpStore::connect(address)).await.unwrap_err();
    assert_eq!(error.kind(), tenure::ErrorKind::Unavailable);
    assert!(error.to_string().contains("the store could not be connected"), "{error}");
}
