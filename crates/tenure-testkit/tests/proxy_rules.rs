//! The rules of the proxy choose requests and count the faults that really happened, and the log has every request.
#![allow(clippy::disallowed_methods, reason = "many clients are many threads")]

mod support;

use std::time::Duration;

use support::client::Client;
use support::world::{LONG, SHORT, World, assert_counts};
use tenure_testkit::{Counts, ErrorAnswer, Fault, FaultyProxy, Kind, Rule, Server};

#[test]
fn the_log_has_the_outcome_of_each_request() {
    let world = World::new();
    let mut client = world.client();
    client.ask("PUT", "/stale?x=1", &[("If-Match", "\"a\"")], "one").unwrap();
    client.ask("PUT", "/key", &[("if-none-match", "*")], "one").unwrap();
    world.proxy.install(Rule::new(Fault::CutAfter));
    client.get("/stale").unwrap_err();
    world.proxy.settle(LONG);

    let log = world.proxy.log();
    let conditions: Vec<_> =
        log.iter().map(|each| (each.if_match.as_deref(), each.if_none_match.as_deref())).collect();
    assert_eq!(conditions, [(Some("\"a\""), None), (None, Some("*")), (None, None)]);
    let ways: Vec<_> =
        log.iter().map(|each| format!("{} {} {:?}", each.method, each.target, each.fault)).collect();
    assert_eq!(ways, ["PUT /stale?x=1 None", "PUT /key None", "GET /stale Some(CutAfter)"]);
    assert_eq!(log[2].served, [412]);
    assert_eq!((log[1].answered, log[2].answered), (Some(200), None));
    assert!(log[1].was_applied() && !log[2].was_applied());
    assert!(log[0].at <= log[1].at && log[1].at <= log[2].at);

    world.proxy.clear_log();
    assert_eq!(world.proxy.log().len(), 0);
}

#[test]
fn the_log_and_the_counts_have_an_exchange_before_the_client_has_its_answer() {
    let world = World::new();
    let rule = world.proxy.install(Rule::new(Fault::AnswerInstead(ErrorAnswer::INTERNAL)).method("GET"));
    let mut client = world.client();
    for round in 1..=1000 {
        client.put("/key", "one").unwrap();
        let put = world.proxy.log().pop().unwrap();
        assert_eq!((put.served.as_slice(), put.answered), ([200].as_slice(), Some(200)), "round {round}");
        client.get("/key").unwrap();
        assert_counts(&rule, round, 0, 0);
        world.proxy.clear_log();
    }
}

#[test]
fn a_fault_that_could_not_happen_is_counted_as_skipped() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = FaultyProxy::start(unused);
    let faults = [
        Fault::CutAfter,
        Fault::CutThenDeliver(Duration::ZERO),
        Fault::TwiceFirstAnswer,
        Fault::AnswerAfter(ErrorAnswer::INTERNAL),
    ];
    for fault in faults {
        let rule = proxy.install(Rule::new(fault).times(1));
        Client::new(proxy.address()).put("/key", "one").unwrap_err();
        proxy.settle(LONG);
        assert_counts(&rule, 0, 0, 1);
    }
    Client::new(proxy.address()).put("/key", "one").unwrap_err();
    assert_eq!(proxy.counts().into_iter().map(|(_, counts)| counts).sum::<Counts>().skipped, 4);
}

#[test]
fn a_rule_applies_only_to_matching_requests() {
    let world = World::new();
    let mut client = world.client();
    let rule = Rule::new(Fault::AnswerInstead(ErrorAnswer::INTERNAL));
    let narrow = world.proxy.install(rule.method("PUT").path("locks/x").header("If-Match").nth(2));
    let mut ask = |method, path, headers: &[_]| client.ask(method, path, headers, "").unwrap().status;
    let condition = [("if-match", "\"a\"")];
    assert_eq!(ask("PUT", "/b/locks/x", &condition), 200, "the first");
    assert_eq!(ask("GET", "/b/locks/x", &condition), 200);
    assert_eq!(ask("PUT", "/b/locks/y", &condition), 200);
    assert_eq!(ask("PUT", "/b/locks/x", &[]), 200);
    assert_eq!(ask("PUT", "/b/locks/x", &condition), 500, "the second");
    assert_eq!(ask("PUT", "/b/locks/x", &condition), 200, "the third");
    world.proxy.settle(LONG);
    assert_counts(&narrow, 1, 0, 0);

    let all = world.proxy.install(Rule::new(Fault::AnswerInstead(ErrorAnswer::SLOW_DOWN)));
    assert_eq!([ask("GET", "/", &[]), ask("GET", "/", &[])], [503, 503]);
    all.remove();
    assert_eq!(ask("GET", "/", &[]), 200);
    world.proxy.settle(LONG);
    assert_counts(&all, 2, 0, 0);
}

#[test]
fn the_rule_installed_first_applies() {
    let world = World::new();
    let first = world.proxy.install(Rule::new(Fault::AnswerInstead(ErrorAnswer::INTERNAL)).times(1));
    let second = world.proxy.install(Rule::new(Fault::AnswerInstead(ErrorAnswer::SLOW_DOWN)).times(1));
    let mut client = world.client();
    let mut status = || client.get("/key").unwrap().status;
    assert_eq!([status(), status(), status()], [500, 503, 200]);
    world.proxy.settle(LONG);
    assert_counts(&first, 1, 0, 0);
    assert_counts(&second, 1, 0, 1);
}

#[test]
fn the_same_seed_chooses_the_same_requests() {
    let hits = |seed| {
        let world = World::new();
        world.proxy.install(Rule::new(Fault::AnswerInstead(ErrorAnswer::INTERNAL)).chance(0.3, seed));
        let mut client = world.client();
        (0..100).map(|_| client.get("/key").unwrap().status == 500).collect::<Vec<_>>()
    };
    let one = hits(1);
    assert_eq!(one, hits(1));
    assert_ne!(one, hits(2));
    let share = one.iter().filter(|hit| **hit).count();
    assert!((10..60).contains(&share), "{share} of 100");
}

#[test]
fn every_request_of_many_clients_is_accounted_for() {
    let world = World::new();
    let faults = [
        Fault::CutBefore,
        Fault::CutAfter,
        Fault::CutMidAnswer,
        Fault::CutThenDeliver(SHORT),
        Fault::TwiceSecondAnswer,
        Fault::AgainLater(SHORT),
        Fault::AnswerInstead(ErrorAnswer::UNAVAILABLE),
        Fault::AnswerAfter(ErrorAnswer::CONFLICT),
    ];
    for (fault, seed) in faults.into_iter().zip(0..) {
        world.proxy.install(Rule::new(fault).chance(0.04, seed));
    }
    let address = world.proxy.address();
    let clients = (0..8).map(|number| {
        std::thread::spawn(move || {
            let mut client = Client::new(address);
            let mut right = 0;
            for round in 0..200 {
                match client.put(&format!("/{number}"), &round.to_string()) {
                    Ok(answer) if answer.status == 200 && answer.body.is_ok() => right += 1,
                    Ok(answer) if answer.body.is_ok() => {}
                    // The client was cut off: the next request needs a new connection.
                    _ => client = Client::new(address),
                }
            }
            right
        })
    });
    let clients: Vec<_> = clients.collect();
    let right: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let reached = world.requests().len();

    let count = |wanted: &[Fault]| {
        let counts = world.proxy.counts().into_iter().filter(|(fault, _)| wanted.contains(fault));
        usize::try_from(counts.map(|(_, counts)| counts.installed).sum::<u64>()).unwrap()
    };
    for fault in faults {
        assert!(count(&[fault]) >= 10, "{fault:?} happened {} times", count(&[fault]));
    }
    assert_eq!(world.proxy.log().len(), 1600);
    let (never, twice) = (count(&[faults[0], faults[6]]), count(&[faults[4], faults[5]]));
    assert_eq!(reached, 1600 - never + twice);
    assert_eq!(right, 1600 - count(&faults) + twice);
}

#[test]
fn a_signed_request_that_was_cut_after_it_was_applied_is_in_the_bucket() {
    let Some(server) = Server::shared(Kind::Minio) else { return };
    server.create_bucket("proxied");
    let proxy = FaultyProxy::start(server.address());
    let cut = proxy.install(Rule::new(Fault::CutAfter).method("PUT").nth(1));
    let twice = proxy.install(Rule::new(Fault::TwiceSecondAnswer).method("PUT").nth(3));
    let ask = |method, path, body| {
        let signed = server.sign(&proxy.address().to_string(), method, path, body);
        let mut headers: Vec<_> = signed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        if method == "PUT" {
            headers.push(("If-None-Match", "*"));
        }
        Client::new(proxy.address()).ask(method, path, &headers, body)
    };
    ask("PUT", "/proxied/key", "one").unwrap_err();
    assert_eq!(ask("GET", "/proxied/key", "").unwrap().body.unwrap(), "one");
    assert_eq!(ask("PUT", "/proxied/key", "two").unwrap().status, 412);
    assert_eq!(ask("PUT", "/proxied/other", "one").unwrap().status, 412, "its own copy was first");
    proxy.settle(LONG);
    assert_counts(&cut, 1, 1, 0);
    assert_counts(&twice, 1, 1, 0);
    let served: Vec<_> = proxy.log().into_iter().map(|exchange| exchange.served).collect();
    assert_eq!(served, [vec![200], vec![200], vec![412], vec![200, 412]]);
}

#[test]
fn a_removed_condition_is_not_checked_and_the_signature_is_valid() {
    let Some(server) = Server::shared(Kind::Minio) else { return };
    server.create_bucket("forgotten");
    let proxy = FaultyProxy::start(server.address());
    let forgotten = proxy.install(Rule::new(Fault::ForgetCondition).method("PUT").nth(3));
    let ask = |method, body: &str, condition: &[(&str, &str)]| {
        let signed = server.sign(&proxy.address().to_string(), method, "/forgotten/key", body);
        let mut headers: Vec<_> = signed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.extend(condition);
        Client::new(proxy.address()).ask(method, "/forgotten/key", &headers, body).unwrap()
    };
    let create = [("If-None-Match", "*")];
    assert_eq!(ask("PUT", "one", &create).status, 200);
    assert_eq!(ask("PUT", "two", &create).status, 412);
    assert_eq!(ask("PUT", "three", &create).status, 200, "its condition was forgotten");
    assert_eq!(ask("GET", "", &[]).body.unwrap(), "three");
    assert_eq!(ask("PUT", "four", &create).status, 412);
    assert_counts(&forgotten, 1, 1, 0);
}
