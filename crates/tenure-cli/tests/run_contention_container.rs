//! A dozen supervisors contend for one lease in a container of Azurite, over a good network and over a bad one, while the
//! holder is killed, stopped and stolen from.

mod run_crowd;
mod run_support;

use std::sync::Arc;
use std::time::Duration;

use run_crowd::Place;
use run_crowd::networks::{bad_network, good_network};
use tenure_object::{Azure, Environment};
use tenure_testkit::{FaultyProxy, Kind, Server};

/// The container, which commands reach at this endpoint. The test reads it over its own connection.
fn place(server: &Server, container: &str, endpoint: &str) -> Place {
    server.create_bucket(container);
    let store =
        Azure::builder(container).prefix("locks").account(server.account()).endpoint(&server.endpoint());
    let store = store.access_key(server.account_key()).open_in(&Environment::default());
    let url = format!("az://{container}/locks?endpoint={endpoint}");
    Place::new(url, server.environment(), Arc::new(store.unwrap()), Duration::from_millis(20))
}

#[test]
fn a_dozen_supervisors_of_a_lease_in_a_container_never_overlap_whatever_happens_to_the_holder() {
    let Some(server) = Server::shared(Kind::Azurite) else { return };
    good_network(&place(server, "dozen", &server.endpoint()));
}

#[test]
fn supervisors_never_overlap_over_a_bad_network_which_alone_stops_no_command() {
    let Some(server) = Server::shared(Kind::Azurite) else { return };
    let proxy = FaultyProxy::start(server.address());
    bad_network(&place(server, "bad-network", &server.endpoint_at(proxy.address())), &proxy);
}
