//! A dozen supervisors contend for one lease in a PostgreSQL database over a bad network, while the holder is killed,
//! stopped and stolen from, and the server is killed and restarts.

mod run_crowd;
mod run_support;

use std::time::Duration;

use run_crowd::Place;
use run_crowd::networks::worse_network;
use tenure_connect::StoreUrl;
use tenure_testkit::{FaultyProxy, PostgresServer, PostgresSetup};

#[test]
fn supervisors_never_overlap_over_a_bad_network_while_postgresql_is_killed() {
    let Some(server) = PostgresServer::start_or_skip(PostgresSetup::new()) else { return };
    let proxy = FaultyProxy::start_postgres(server.address());
    // The test reads over its own connection.
    let store = server.url().parse::<StoreUrl>().unwrap().open().unwrap();
    let place = Place::new(server.url_at(proxy.address()), Vec::new(), store, Duration::from_millis(20));
    worse_network(&place, &proxy, Duration::from_secs(7), || server.restart());
}
