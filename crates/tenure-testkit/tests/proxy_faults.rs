//! Every fault of the proxy does exactly what it promises, and is counted.
#![allow(clippy::disallowed_methods, reason = "real clients wait in real time")]

mod support;

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Instant;

use support::client::Client;
use support::world::{LONG, SHORT, World, assert_counts};
use tenure_testkit::{ErrorAnswer, Fault, Rule};

#[test]
fn a_request_without_a_rule_is_forwarded() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(client.put("/key", "one").unwrap().body.unwrap(), "1");
    assert_eq!(client.put("/empty", "").unwrap().body.unwrap(), "");
    assert_eq!(client.get("/chunked").unwrap().body.unwrap(), "n 3");
    assert_eq!(client.ask("HEAD", "/key", &[], "").unwrap().status, 200);
    assert_eq!(client.get("/nothing").unwrap().status, 204);
    assert_eq!(client.get("/unchanged").unwrap().status, 304);
    assert_eq!(client.get("/stale").unwrap().status, 412);
    let chunked = "PUT /in-chunks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4;x=y\r\n two\r\n0\r\nX-Sum: 1\r\n\r\n";
    assert_eq!(client.raw(chunked).unwrap().body.unwrap(), "8");
    assert_eq!(client.raw("GET /bare HTTP/1.1\r\n\r\n").unwrap().body.unwrap(), "9");
    let expecting =
        client.raw("PUT /wait HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n").unwrap();
    assert_eq!(expecting.status, 100);
    assert_eq!(client.raw("one").unwrap().body.unwrap(), "10");
    let two = "PUT /first HTTP/1.1\r\nContent-Length: 1\r\n\r\n1GET /second HTTP/1.1\r\n\r\n";
    assert_eq!(client.raw(two).unwrap().body.unwrap(), "11");
    assert_eq!(client.answer(false).unwrap().body.unwrap(), "12");

    assert_eq!(world.requests()[7..10], ["PUT /in-chunks one two", "GET /bare", "PUT /wait one"]);
    assert!(world.proxy.log().iter().all(|exchange| exchange.connection == 1 && exchange.fault.is_none()));
    assert_eq!(client.get("/closing").unwrap().body.unwrap(), "13");
    assert!(client.get("/key").is_err(), "closed as the server said");
    assert_eq!(world.client().get("/until-close").unwrap().body.unwrap(), "14");
}

#[test]
fn cut_before_never_reaches_the_server() {
    let (world, rule) = World::with(Fault::CutBefore);
    assert_eq!(world.put_fails(), ErrorKind::ConnectionReset);
    assert_eq!(world.requests().len(), 0);
    assert_counts(&rule, 1, 0, 0);
    assert_eq!(world.client().put("/key", "two").unwrap().status, 200, "it was one request's fault");
}

#[test]
fn cut_after_is_applied_and_not_answered() {
    let (world, rule) = World::with(Fault::CutAfter);
    assert_eq!(world.put_fails(), ErrorKind::ConnectionReset);
    assert_eq!(world.requests(), ["PUT /key one"]);
    assert_counts(&rule, 1, 1, 0);
}

#[test]
fn a_connection_can_be_cut_in_order() {
    let world = World::new();
    let rule = world.proxy.install(Rule::new(Fault::CutAfter).orderly());
    assert_eq!(world.put_fails(), ErrorKind::UnexpectedEof);
    assert_eq!(world.requests().len(), 1);
    assert_counts(&rule, 1, 1, 0);
}

#[test]
fn cut_mid_answer_shows_the_status_and_not_the_body() {
    for path in ["/key", "/empty", "/chunked", "/until-close"] {
        let (world, rule) = World::with(Fault::CutMidAnswer);
        let answer = world.client().put(path, "one").unwrap();
        assert_eq!(answer.status, 200);
        match path {
            // If an answer ends with the connection, no client can detect that it was cut.
            "/until-close" => assert_eq!(answer.body.unwrap(), ""),
            _ => assert_eq!(answer.body.unwrap_err().kind(), ErrorKind::UnexpectedEof, "{path}"),
        }
        assert_eq!(answer.head.contains("ETag: \"e\""), path == "/empty");
        assert_eq!(world.requests().len(), 1);
        assert_counts(&rule, 1, 1, 0);
        assert_eq!(world.proxy.log()[0].answered, Some(200));
    }
}

#[test]
fn cut_mid_answer_skips_an_answer_without_a_body() {
    for (method, path) in [("HEAD", "/key"), ("GET", "/nothing"), ("GET", "/unchanged")] {
        let (world, rule) = World::with(Fault::CutMidAnswer);
        let mut client = world.client();
        client.ask(method, path, &[], "").unwrap();
        client.get("/key").unwrap();
        world.proxy.settle(LONG);
        assert_counts(&rule, 0, 0, 1);
    }
}

#[test]
fn cut_then_deliver_reaches_the_server_when_the_client_has_given_up() {
    let (world, rule) = World::with(Fault::CutThenDeliver(SHORT));
    assert_eq!(world.put_fails(), ErrorKind::ConnectionReset);
    assert_eq!(world.recorder.requests().len(), 0);
    assert_counts(&rule, 0, 0, 0);
    world.client().put("/other", "two").unwrap();
    assert_eq!(world.requests(), ["PUT /other two", "PUT /key one"]);
    assert_counts(&rule, 1, 1, 0);
}

#[test]
fn hang_then_deliver_reaches_the_server_when_the_client_has_given_up() {
    let (world, rule) = World::with(Fault::HangThenDeliver(SHORT));
    let mut impatient = world.client().patient_for(SHORT / 20);
    assert_eq!(impatient.put("/key", "one").unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(impatient);
    assert_eq!(world.recorder.requests().len(), 0);
    assert_eq!(world.requests(), ["PUT /key one"]);
    assert_counts(&rule, 1, 1, 0);
}

#[test]
fn a_client_that_waits_longer_than_a_hanging_request_is_cut_off() {
    let (world, _) = World::with(Fault::HangThenDeliver(SHORT));
    assert_eq!(world.put_fails(), ErrorKind::ConnectionReset);
    assert_eq!(world.requests(), ["PUT /key one"]);
}

#[test]
fn a_request_sent_twice_gets_the_chosen_answer() {
    for (fault, answer) in [(Fault::TwiceFirstAnswer, "1"), (Fault::TwiceSecondAnswer, "2")] {
        let (world, rule) = World::with(fault);
        let mut client = world.client();
        assert_eq!(client.put("/key", "one").unwrap().body.unwrap(), answer);
        assert_eq!(client.get("/key").unwrap().body.unwrap(), "3", "the connection is as before");
        assert_eq!(world.requests(), ["PUT /key one", "PUT /key one", "GET /key"]);
        assert_counts(&rule, 1, 1, 0);
        assert_eq!(world.proxy.log()[0].served, [200, 200]);
    }
}

#[test]
fn a_copy_of_a_request_can_arrive_later() {
    let (world, rule) = World::with(Fault::AgainLater(SHORT));
    let mut client = world.client();
    assert_eq!(client.put("/key", "one").unwrap().body.unwrap(), "1");
    client.put("/key", "two").unwrap();
    assert_eq!(world.requests(), ["PUT /key one", "PUT /key two", "PUT /key one"]);
    assert_counts(&rule, 1, 1, 0);
}

#[test]
fn a_swallowed_request_ends_in_a_reset() {
    let (world, rule) = World::with(Fault::SwallowRequest(SHORT));
    let began = Instant::now();
    assert_eq!(world.put_fails(), ErrorKind::ConnectionReset);
    assert!(began.elapsed() >= SHORT);
    assert_eq!(world.requests().len(), 0);
    assert_counts(&rule, 1, 0, 0);
}

#[test]
fn a_swallowed_answer_ends_in_a_reset() {
    let (world, rule) = World::with(Fault::SwallowAnswer(SHORT));
    let began = Instant::now();
    assert_eq!(world.put_fails(), ErrorKind::ConnectionReset);
    assert!(began.elapsed() >= SHORT);
    assert_eq!(world.requests(), ["PUT /key one"]);
    assert_counts(&rule, 1, 1, 0);
}

#[test]
fn a_swallowed_answer_ends_when_the_client_gives_up() {
    let (world, _) = World::with(Fault::SwallowAnswer(LONG * 2));
    let mut impatient = world.client().patient_for(SHORT / 20);
    assert_eq!(impatient.put("/key", "one").unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(impatient);
    world.proxy.settle(LONG);
}

#[test]
fn delays_change_nothing_else() {
    for fault in [Fault::DelayRequest(SHORT), Fault::DelayAnswer(SHORT)] {
        let (world, rule) = World::with(fault);
        let mut client = world.client();
        let began = Instant::now();
        assert_eq!(client.put("/key", "one").unwrap().body.unwrap(), "1");
        assert!(began.elapsed() >= SHORT);
        assert_eq!(client.put("/key", "two").unwrap().body.unwrap(), "2");
        world.proxy.settle(LONG);
        assert_counts(&rule, 1, 1, 0);
    }
}

#[test]
fn an_error_can_replace_the_request_or_its_answer() {
    let errors = [
        (ErrorAnswer::CONFLICT, 409, "ConditionalRequestConflict"),
        (ErrorAnswer::TOO_MANY, 429, "TooManyRequests"),
        (ErrorAnswer::INTERNAL, 500, "InternalError"),
        (ErrorAnswer::SLOW_DOWN, 503, "SlowDown"),
        (ErrorAnswer::UNAVAILABLE, 503, "ServiceUnavailable"),
        (ErrorAnswer::new(501, "NotImplemented"), 501, "NotImplemented"),
    ];
    for (error, status, code) in errors {
        for (fault, reached) in [(Fault::AnswerInstead(error), 0), (Fault::AnswerAfter(error), 1)] {
            let (world, rule) = World::with(fault);
            let mut client = world.client();
            let answer = client.put("/key", "one").unwrap();
            assert_eq!(answer.status, status);
            assert!(answer.body.unwrap().contains(&format!("<Code>{code}</Code>")));
            assert_eq!(answer.head.contains("\r\nRetry-After: 1\r\n"), status == 429);
            assert_eq!(world.requests().len(), reached);
            assert_counts(&rule, 1, reached as u64, 0);
            assert_eq!(client.get("/key").unwrap().status, 200, "the connection is as before");
        }
    }
    let (world, _) = World::with(Fault::AnswerInstead(ErrorAnswer::INTERNAL));
    let mut client = world.client();
    assert_eq!(client.ask("HEAD", "/key", &[], "").unwrap().status, 500);
    assert_eq!(client.get("/key").unwrap().status, 200);
}

#[test]
fn connections_can_be_refused_for_a_while() {
    let world = World::new();
    let mut client = world.client();
    client.get("/key").unwrap();
    world.proxy.refuse_connections();
    assert!(client.get("/key").is_err(), "the ones there were are closed");
    assert_eq!(TcpStream::connect(world.proxy.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    world.proxy.accept_connections();
    assert_eq!(world.client().get("/key").unwrap().body.unwrap(), "2");
    world.proxy.accept_connections();
    assert_eq!(world.client().get("/key").unwrap().body.unwrap(), "3");
}

#[test]
fn idle_connections_can_be_closed() {
    let world = World::new();
    let mut client = world.client();
    client.get("/key").unwrap();
    world.proxy.cut_connections();
    assert!(client.get("/key").is_err());
    assert_eq!(world.client().get("/key").unwrap().status, 200);
    assert_eq!(world.requests().len(), 2);
}

#[test]
fn a_dropped_proxy_stops_listening() {
    let World { proxy, .. } = World::new();
    let address = proxy.address();
    let mut client = Client::new(address);
    client.get("/key").unwrap();
    drop(proxy);
    assert!(client.get("/key").is_err());
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
