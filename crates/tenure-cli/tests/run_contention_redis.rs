//! A dozen supervisors contend for one lease on Redis over a bad network, while the holder is killed, stopped and stolen
//! from, and the server is killed and forgets the lease.

mod run_crowd;
mod run_support;

use std::time::Duration;

use run_crowd::Place;
use run_crowd::networks::worse_network;
use tenure_connect::StoreUrl;
use tenure_testkit::{FaultyProxy, RedisKind, RedisServer, RedisSetup};

#[test]
fn supervisors_never_overlap_over_a_bad_network_while_redis_forgets_the_lease() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let proxy = FaultyProxy::start_redis(server.address());
    let url = |address| format!("{}?quarantine=3s", server.url_at(address));
    // The test reads over its own connection.
    let store = url(server.address()).parse::<StoreUrl>().unwrap().open().unwrap();
    let place = Place::new(url(proxy.address()), Vec::new(), store, Duration::from_millis(20));
    // Leases are granted when the quarantine of 3.6 s is over.
    worse_network(&place, &proxy, Duration::from_secs(9), || server.restart());
}
