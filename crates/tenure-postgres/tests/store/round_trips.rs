//! The cost of a lease, in round trips.

use tenure::Coordinator;
use tenure_postgres::Calls;
use tenure_testkit::{PostgresKind, PostgresSetup};

use crate::database::Database;

#[tokio::test]
async fn what_a_lease_costs_is_counted_in_round_trips() {
    if let Some(database) = Database::on_shared("costs") {
        verify_costs(&database).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_newest_postgresql_a_lease_costs_the_same_and_survives_a_kill_of_the_server() {
    let newest = PostgresSetup::new().kind(PostgresKind::Newest);
    let Some(database) = Database::alone_with(newest, "newest") else { return };
    verify_costs(&database).await;
    let holder = Coordinator::connect(database.store()).await.unwrap();
    let lease = holder.lease("job").unwrap().without_witness().acquire().await.unwrap();
    database.server().restart();
    lease.renew().await.expect("it connects again");
    lease.release().await.unwrap();
}

async fn verify_costs(database: &Database) {
    let store = database.store();
    let warm = Coordinator::connect(store.clone()).await.unwrap();
    let mut before = store.calls();
    let mut cost = |now: Calls| {
        let cost = (now.reads - before.reads, now.writes - before.writes, now.others - before.others);
        before = now;
        cost
    };
    let lease = warm.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    assert_eq!(cost(store.calls()), (1, 2, 0), "first use: a read, the plant and the grant");
    lease.renew().await.unwrap();
    assert_eq!(cost(store.calls()), (0, 1, 0), "a renewal");
    lease.release().await.unwrap();
    assert_eq!(cost(store.calls()), (0, 1, 0), "a release");
    let lease = warm.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    assert_eq!(cost(store.calls()), (0, 1, 0), "a warm acquire");
    lease.release().await.unwrap();
    assert_eq!(store.calls().connections, 1, "calls that do not overlap share a connection");

    let store = database.store();
    let cold = Coordinator::connect(store.clone()).await.unwrap();
    let before = store.calls();
    let _lease = cold.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    let now = store.calls();
    assert_eq!((now.reads - before.reads, now.writes - before.writes), (1, 1), "a cold acquire");
}

/// The counts of the store are those of the wire: one statement for each.
#[tokio::test]
async fn each_call_is_one_statement() {
    use crate::{create, replace};
    use tenure_store::{Purpose, Store};
    let Some(database) = Database::on_shared("statements") else { return };
    let (store, key) = (database.store(), tenure_testkit::key("k"));
    let version = create(&store, &key).await;
    database.proxy().clear_log();
    let version = crate::applied(replace(&store, &key, &version, Purpose::Grant { token: 7 }).await);
    let version = crate::applied(replace(&store, &key, &version, Purpose::Renewal).await);
    crate::applied(replace(&store, &key, &version, Purpose::Release).await);
    store.get(&key).await.unwrap();
    let log = database.proxy().log();
    assert_eq!(log.len(), 4, "{log:?}");
}
