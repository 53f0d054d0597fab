//! The servers for Azure and Google decide as the tests of Tenure need it, also behind the faulty proxy.
#![allow(clippy::disallowed_methods, reason = "racers need threads of their own")]

mod support;

use std::sync::Barrier;

use support::objects::{Condition, Objects};
use support::peer::header;
use tenure_testkit::{ErrorAnswer, Fault, FaultyProxy, Kind, Rule, Server};

/// A shared server with its own bucket, and a proxy in front of it.
fn served(kind: Kind, bucket: &str) -> Option<(&'static Server, FaultyProxy)> {
    let server = Server::shared(kind)?;
    server.create_bucket(bucket);
    Some((server, FaultyProxy::start(server.address())))
}

/// The number of winners of each round: of creates in even rounds, of replacements in odd ones.
fn winners(objects: Objects<'_>, bucket: &str, racers: usize, rounds: usize) -> Vec<usize> {
    let mut version = None;
    let round = |round: usize| {
        let key = format!("/{bucket}/race-{}", round / 2);
        let condition = version.as_deref().map_or(Condition::Absent, Condition::Version);
        let barrier = Barrier::new(racers);
        let statuses: Vec<_> = std::thread::scope(|scope| {
            let racer = |number: usize| {
                barrier.wait();
                objects.put(&key, &format!("by {number} in round {round}"), condition).status
            };
            let racers: Vec<_> = (0..racers).map(|number| scope.spawn(move || racer(number))).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let lost = statuses.iter().filter(|status| matches!(status, 409 | 412)).count();
        let won = statuses.iter().filter(|status| matches!(status, 200 | 201)).count();
        assert_eq!(won + lost, racers, "{statuses:?}");
        version = round.is_multiple_of(2).then(|| objects.version(&objects.get(&key)));
        won
    };
    (0..rounds).map(round).collect()
}

#[test]
fn a_race_on_azurite_has_one_winner() {
    let Some((server, proxy)) = served(Kind::Azurite, "race") else { return };
    assert_eq!(winners(Objects::at(server, proxy.address()), "race", 64, 6), [1; 6]);
}

#[test]
fn a_race_on_fake_gcs_has_one_winner() {
    let Some((server, proxy)) = served(Kind::FakeGcs, "race") else { return };
    assert_eq!(winners(Objects::at(server, proxy.address()), "race", 64, 6), [1; 6]);
    let conditions = proxy.log().iter().filter(|exchange| exchange.if_generation_match.is_some()).count();
    assert_eq!(conditions, 6 * 64);
}

#[test]
fn a_race_on_the_emulator_that_ignores_conditions_has_many_winners() {
    let Some((server, proxy)) = served(Kind::GcpEmulator, "race") else { return };
    assert_eq!(winners(Objects::at(server, proxy.address()), "race", 64, 2), [64; 2]);
}

#[test]
fn azurite_answers_like_azure() {
    let Some((server, proxy)) = served(Kind::Azurite, "answers") else { return };
    let objects = Objects::at(server, proxy.address());
    let created = objects.put("/answers/a%20b/%C3%A9", "one", Condition::Absent);
    assert_eq!(created.status, 201);
    let first = objects.version(&created);
    assert_eq!(
        code(&objects.put("/answers/a%20b/%C3%A9", "one", Condition::Absent)),
        "409 BlobAlreadyExists"
    );
    let second = objects.put("/answers/a%20b/%C3%A9", "one", Condition::Version(&first));
    assert_ne!(objects.version(&second), first, "equal content has another ETag");
    assert_eq!(
        code(&objects.put("/answers/a%20b/%C3%A9", "two", Condition::Version(&first))),
        "412 ConditionNotMet"
    );
    assert_eq!(
        code(&objects.put("/answers/missing", "two", Condition::Version(&first))),
        "412 ConditionNotMet"
    );

    let read = objects.get("/answers/a%20b/%C3%A9");
    assert_eq!((read.status, objects.version(&read)), (200, objects.version(&second)));
    assert!(["date", "last-modified"].iter().all(|name| header(&read.head, name).is_some()), "{read:?}");
    let known = objects.version(&second);
    let unchanged = objects.ask("GET", "/answers/a%20b/%C3%A9", &[("if-none-match", &known)]);
    assert_eq!(unchanged.status, 304);
    assert_eq!(code(&objects.get("/answers/missing")), "404 BlobNotFound");
    assert_eq!(code(&objects.get("/nowhere/missing")), "404 ContainerNotFound");
    assert_eq!(code(&objects.put("/nowhere/missing", "one", Condition::Absent)), "404 ContainerNotFound");
    let list = objects.ask("GET", "/answers?restype=container&comp=list&prefix=a%20b%2F", &[]);
    assert!(list.body.unwrap().contains("<Name>a b/é</Name>"));
    assert_eq!(objects.ask("DELETE", "/answers/a%20b/%C3%A9", &[]).status, 202);
}

#[test]
fn fake_gcs_answers_like_google() {
    let Some((server, proxy)) = served(Kind::FakeGcs, "answers") else { return };
    answers_like_google(Objects::at(server, proxy.address()), "412 PreconditionFailed");
}

#[test]
fn the_emulator_that_ignores_conditions_answers_like_google() {
    let Some((server, proxy)) = served(Kind::GcpEmulator, "answers") else { return };
    answers_like_google(Objects::at(server, proxy.address()), "200 ");
}

/// `stale` is the answer to a write whose condition does not hold.
fn answers_like_google(objects: Objects<'_>, stale: &str) {
    let key = "/answers/a%20b%2F%C3%A9%2Bc%2525%26%3C.record";
    let created = objects.put(key, "one", Condition::Absent);
    let first = objects.version(&created);
    assert_eq!(code(&objects.put(key, "one", Condition::Absent)), stale);
    let first = if stale.starts_with("200") { objects.version(&objects.get(key)) } else { first };
    let second = objects.put(key, "one", Condition::Version(&first));
    assert_ne!(objects.version(&second), first, "equal content has another generation");
    assert_eq!(header(&second.head, "etag"), header(&created.head, "etag"), "and the same ETag");
    assert_eq!(code(&objects.put("/answers/missing", "two", Condition::Version("12345"))), stale);

    // A slash may be escaped or not.
    for key in [key, &key.replace("%2F", "/")] {
        let read = objects.get(key);
        assert_eq!((read.status, read.body.as_deref().unwrap()), (200, "one"));
        assert_eq!(objects.version(&read), objects.version(&second));
        assert!(["date", "last-modified"].iter().all(|name| header(&read.head, name).is_some()), "{read:?}");
    }
    let head = objects.ask("HEAD", key, &[]);
    assert_eq!((head.status, header(&head.head, "content-length")), (200, Some("3")));
    let known = header(&second.head, "etag").unwrap();
    let unchanged = objects.ask("GET", key, &[("if-none-match", known)]);
    assert_eq!((unchanged.status, objects.version(&unchanged)), (304, objects.version(&second)));
    assert_eq!(objects.ask("GET", key, &[("if-none-match", "\"other\"")]).status, 200);

    assert_eq!(code(&objects.get("/answers/absent")), "404 NoSuchKey");
    assert_eq!(code(&objects.get("/nowhere/absent")), "404 NoSuchBucket");
    assert_eq!(code(&objects.put("/nowhere/absent", "one", Condition::Absent)), "404 NoSuchBucket");
    assert_eq!(code(&objects.ask("GET", "/nowhere?list-type=2", &[])), "404 NoSuchBucket");
    assert_eq!(code(&objects.ask("DELETE", "/answers/absent", &[])), "404 NoSuchKey");
    assert_eq!(
        code(&objects.ask("DELETE", key, &[("x-goog-if-generation-match", "1")])),
        "501 NotImplemented"
    );

    let list = objects.ask("GET", "/answers?list-type=2&prefix=a+b%2F", &[]).body.unwrap();
    assert!(list.contains("<Key>a b/é+c%25&amp;&lt;.record</Key>"), "{list}");
    let grouped = objects.ask("GET", "/answers?list-type=2&delimiter=%2F", &[]).body.unwrap();
    assert!(grouped.contains("<CommonPrefixes><Prefix>a b/</Prefix></CommonPrefixes>"), "{grouped}");
    assert_eq!(objects.ask("DELETE", key, &[]).status, 204);
    assert_eq!(code(&objects.get(key)), "404 NoSuchKey");
}

#[test]
fn fake_gcs_lists_in_pages() {
    let Some((server, proxy)) = served(Kind::FakeGcs, "pages") else { return };
    let objects = Objects::at(server, proxy.address());
    for key in ["a", "b c", "d"] {
        objects.put(&format!("/pages/{}", key.replace(' ', "%20")), "one", Condition::Always);
    }
    let keys = |list: &str| {
        let keys = list.split("<Key>").skip(1).map(|rest| rest.split_once('<').unwrap().0.to_owned());
        keys.collect::<Vec<_>>()
    };
    let first = objects.ask("GET", "/pages?list-type=2&max-keys=1", &[]).body.unwrap();
    assert_eq!(keys(&first), ["a"]);
    let token = first.split_once("<NextContinuationToken>").unwrap().1.split_once('<').unwrap().0;
    let next = format!("/pages?list-type=2&max-keys=2&continuation-token={}", token.replace(' ', "+"));
    let last = objects.ask("GET", &next, &[]).body.unwrap();
    assert_eq!(keys(&last), ["b c", "d"]);
    assert!(!last.contains("NextContinuationToken"));
    let rest = objects.ask("GET", "/pages?list-type=2&start-after=b+c", &[]).body.unwrap();
    assert_eq!(keys(&rest), ["d"], "the offset itself is not listed");
}

#[test]
fn a_read_of_fake_gcs_has_the_generation_of_its_content_while_others_write() {
    let Some((server, proxy)) = served(Kind::FakeGcs, "torn") else { return };
    let objects = Objects::at(server, proxy.address());
    let write = |number: usize| {
        let body = format!("{number}:").repeat(1 + number % 50);
        let answer = objects.put("/torn/key", &body, Condition::Always);
        (objects.version(&answer), body)
    };
    let first = write(0);
    let (written, read) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..200).map(write).collect::<Vec<_>>());
        let mut read = Vec::new();
        while !writer.is_finished() {
            let answer = objects.get("/torn/key");
            assert_eq!(answer.status, 200, "{answer:?}");
            read.push((objects.version(&answer), answer.body.unwrap()));
        }
        (writer.join().unwrap(), read)
    });
    assert!(read.len() > 10, "only {} reads", read.len());
    let torn = read.iter().filter(|read| **read != first && !written.contains(read)).count();
    assert_eq!(torn, 0, "of {} reads", read.len());
}

#[test]
fn faults_happen_in_front_of_each_server() {
    for kind in [Kind::Azurite, Kind::FakeGcs, Kind::GcpEmulator] {
        let Some((server, proxy)) = served(kind, "faults") else { return };
        let objects = Objects::at(server, proxy.address());
        let lost = proxy.install(Rule::new(Fault::CutAfter).method("PUT").path("lost").times(1));
        objects.try_put("/faults/lost", "one", Condition::Absent).unwrap_err();
        assert_eq!(lost.counts().applied, 1, "{kind:?}");
        assert_eq!(objects.get("/faults/lost").body.unwrap(), "one");

        let forgotten = proxy.install(Rule::new(Fault::ForgetCondition).method("PUT").path("lost").times(1));
        let again = objects.put("/faults/lost", "two", Condition::Absent);
        assert!(matches!(again.status, 200 | 201), "{kind:?}: {again:?}");
        assert_eq!(forgotten.counts().applied, 1, "{kind:?}");
        assert_eq!(objects.get("/faults/lost").body.unwrap(), "two");

        let busy = ErrorAnswer::new(503, "ServerBusy");
        proxy.install(Rule::new(Fault::AnswerInstead(busy)).method("PUT").path("busy"));
        assert_eq!(
            code(&objects.put("/faults/busy", "one", Condition::Absent)),
            "503 ServerBusy",
            "{kind:?}"
        );
    }
}

/// Status and code of an answer. Azure's code is in a header, Google's in the body.
fn code(answer: &support::client::Answer) -> String {
    let body = answer.body.as_deref().unwrap_or_default();
    let in_body = body.split_once("<Code>").map(|(_, rest)| rest.split_once('<').unwrap().0);
    let code = header(&answer.head, "x-ms-error-code").or(in_body).unwrap_or_default();
    format!("{} {code}", answer.status)
}
