//! `tenure watch`: events of leases, as text and as JSON.

mod run_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use run_support::{PATIENCE, World, block_on, exit_code, skipped, until};
use rustix::process::Signal;
use serde_json::Value;
use tenure::{Coordinator, Holder};

/// A running watch, with its output in files.
struct Watching {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Watching {
    fn start(world: &World, words: &[&str]) -> Self {
        let mut command = world.tenure(&["watch"]);
        command.args(words);
        Self::of(world, command)
    }

    fn of(world: &World, mut command: Command) -> Self {
        let (out, err) = (world.path("told"), world.path("complained"));
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        Self { child: command.spawn().unwrap(), out, err }
    }

    /// The complete lines of output so far.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.out).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        whole.lines().map(str::to_owned).collect()
    }

    /// The events so far. Each line is a JSON object.
    fn events(&self) -> Vec<Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events in words, once the last of them is `last`.
    fn words_to(&self, last: &str) -> Vec<String> {
        let words = || {
            let words: Vec<String> = self.events().iter().map(word).collect();
            (words.last().is_some_and(|word| word == last)).then_some(words)
        };
        let said =
            || format!("{last:?} at the end of {:?}, {:?}", self.lines(), fs::read_to_string(&self.err));
        until_said(words, said)
    }

    fn waits_for(&self, event: &str) -> Value {
        let find = || self.events().into_iter().find(|said| said["event"] == event);
        until_said(find, || format!("{event:?} in {:?}", self.lines()))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until_said<T>(mut come: impl FnMut() -> Option<T>, said: impl Fn() -> String) -> T {
    let mut left = PATIENCE.as_millis() / 10;
    loop {
        if let Some(come) = come() {
            return come;
        }
        assert!(left > 0, "no {}", said());
        left -= 1;
        run_support::sleep_ms(10);
    }
}

fn word(event: &Value) -> String {
    match event["name"].as_str() {
        Some(name) => format!("{name} {}", event["event"].as_str().unwrap()),
        None => event["event"].as_str().unwrap().to_owned(),
    }
}

fn process(world: &World, holder: &str) -> Coordinator {
    let holder = Holder::new(holder).unwrap();
    block_on(Coordinator::builder().holder(holder).connect(world.store())).unwrap()
}

#[test]
fn watch_reports_a_run_from_its_grant_to_its_release() {
    let world = World::new("watch-run");
    world.ran(world.run(&["other", "--", "true"]));
    let watching = Watching::start(&world, &["x", "--json"]);
    assert_eq!(watching.words_to("x stands"), ["x stands"]);
    let first = &watching.events()[0];
    assert_eq!((&first["lease"]["state"], &first["lease"]["free"]), (&"absent".into(), &true.into()));
    let words = ["x", "--holder", "me", "--", "sh", "-c", "echo $TENURE_TOKEN > token"];
    assert_eq!(world.ran(world.run(&words)).code, 0);
    assert_eq!(watching.words_to("x released"), ["x stands", "x granted", "x released"]);
    let token: u64 = world.told("token").parse().unwrap();
    for event in &watching.events()[1..] {
        assert_eq!((&event["token"], &event["holder"]), (&token.into(), &"me".into()), "{event}");
        assert!(event["written_at"].as_str().unwrap() <= event["seen_at"].as_str().unwrap(), "{event}");
    }
    let fields: Vec<_> = watching.events()[1].as_object().unwrap().keys().cloned().collect();
    let expected = [
        "event",
        "seen_at",
        "name",
        "token",
        "holder",
        "written_at",
        "by",
        "because",
        "successor",
        "message",
        "since",
        "lease",
    ];
    assert_eq!(fields, expected, "every field is always there");
}

#[test]
fn watch_prints_lines_without_colours_if_there_is_no_terminal() {
    let world = World::new("watch-people");
    world.ran(world.run(&["x", "--", "true"]));
    let watching = Watching::start(&world, &["x"]);
    until("the first line", PATIENCE, || (!watching.lines().is_empty()).then_some(()));
    world.ran(world.run(&["x", "--holder", "web-1\u{202e}", "--", "true"]));
    let lines = until("three lines", PATIENCE, || Some(watching.lines()).filter(|lines| lines.len() >= 3));
    let token = world.record("x").unwrap().token;
    let said: Vec<_> = lines.iter().map(|line| line.split_once("Z  ").unwrap().1).collect();
    assert!(said[0].starts_with("x: free, the last token "), "{said:?}");
    assert_eq!(said[1], format!("x: granted to web-1\\u{{202e}}, token {token}"));
    assert_eq!(said[2], format!("x: released by web-1\\u{{202e}}, token {token}"));
    assert!(lines.iter().all(|line| !line.contains('\x1b')), "{lines:?}");
}

#[test]
fn watch_reports_renewals_on_request() {
    let world = World::new("watch-renewals");
    let _started = world.start(world.run(&["x", "--ttl", "2s", "--", "sleep", "100"]));
    until("a holder", PATIENCE, || world.is_held("x").then_some(()));
    let watching = Watching::start(&world, &["x", "--renewals", "--json"]);
    watching.waits_for("renewed");
}

#[test]
fn watch_reports_the_death_of_a_holder_even_without_contenders() {
    let world = World::new("watch-killed");
    // The ttl is so long that the next poll is after the end of this test. Only the witness can report the death.
    let started = world.start(world.run(&["x", "--ttl", "10m", "--", "sleep", "100"]));
    until("a holder", PATIENCE, || world.is_held("x").then_some(()));
    let watching = Watching::start(&world, &["--json"]);
    watching.words_to("x stands");
    let token = world.record("x").unwrap().token.get();
    started.process().send(Signal::KILL);
    let died = watching.waits_for("died");
    assert_eq!((&died["token"], &died["written_at"]), (&token.into(), &Value::Null));
    assert_eq!(world.ran(world.run(&["x", "--", "true"])).code, 0);
    let words = watching.words_to("x released");
    assert_eq!(words, ["x stands", "x died", "x granted", "x released"], "it died once");
}

#[test]
fn watch_reports_a_theft_with_the_thief_and_the_reason() {
    let world = World::new("watch-taken");
    let started = world.start(world.run(&["x", "--holder", "old", "--ttl", "3s", "--", "sleep", "100"]));
    until("a holder", PATIENCE, || world.is_held("x").then_some(()));
    let watching = Watching::start(&world, &["--json"]);
    watching.words_to("x stands");
    let lease = block_on(process(&world, "ops").lease("x").unwrap().revoke("it is stuck").acquire()).unwrap();
    let words = watching.words_to("x granted");
    assert_eq!(words, ["x stands", "x revoked", "x taken", "x granted"]);
    let events = watching.events();
    for event in &events[1..3] {
        assert_eq!((&event["by"], &event["because"]), (&"ops".into(), &"it is stuck".into()), "{event}");
        assert_eq!(event["holder"], "old", "{event}");
    }
    assert_eq!((&events[3]["holder"], &events[3]["token"]), (&"ops".into(), &lease.token().get().into()));
    assert_eq!(started.end().code, 76);
}

#[test]
fn watch_reports_new_leases_below_a_prefix_and_no_others() {
    let world = World::new("watch-prefix");
    world.ran(world.run(&["billing/a", "--", "true"]));
    let watching = Watching::start(&world, &["billing/", "--json"]);
    watching.words_to("billing/a stands");
    for name in ["billing-old", "billing/b", "other", "billing"] {
        world.ran(world.run(&[name, "--", "true"]));
    }
    let words = watching.words_to("billing released");
    let expected = [
        "billing/a stands",
        "billing/b granted",
        "billing/b released",
        "billing granted",
        "billing released",
    ];
    assert_eq!(words, expected);
}

#[test]
fn watch_reports_a_store_that_is_moved_away_and_back_and_the_changes_in_between() {
    let world = World::new("watch-moved");
    world.ran(world.run(&["x", "--", "true"]));
    let watching = Watching::start(&world, &["x", "--json"]);
    watching.words_to("x stands");
    let away = world.path("away");
    fs::rename(world.leases(), &away).unwrap();
    let told = watching.waits_for("unavailable");
    let why = told["message"].as_str().unwrap();
    assert!(why.contains("is no longer the directory that was opened"), "{why}");
    // A holder that knows the new path takes a lease there.
    let mut elsewhere = world.run(&["x", "--holder", "nomad", "--", "true"]);
    elsewhere.env("TENURE_STORE", format!("file://{}", away.display()));
    assert_eq!(world.ran(elsewhere).code, 0);
    fs::rename(&away, world.leases()).unwrap();
    let words = watching.words_to("x released");
    assert_eq!(words, ["x stands", "unavailable", "available", "x granted", "x released"]);
    let events = watching.events();
    assert_eq!((&events[2]["since"], &events[3]["holder"]), (&told["seen_at"], &"nomad".into()));
    let complained = fs::read_to_string(&watching.err).unwrap();
    assert_eq!(complained, "");
}

#[test]
fn watch_reports_a_store_that_is_unreadable_for_a_while() {
    let world = World::new("watch-denied");
    world.ran(world.run(&["other", "--", "true"]));
    let mode = |mode| fs::set_permissions(world.leases(), PermissionsExt::from_mode(mode)).unwrap();
    let mut command = world.tenure(&["watch", "x", "--json"]);
    if rustix::process::geteuid().is_root() {
        // Root may read everything, so the command runs as another user.
        mode(0o755);
        fs::set_permissions(world.leases().join("tenure.mark"), PermissionsExt::from_mode(0o644)).unwrap();
        command.uid(54_321).current_dir("/");
        command.env("TENURE_STORE", format!("{}?accept=foreign-owner", world.store_url()));
        let mut able = Command::new(run_support::TENURE);
        if !able
            .arg("--version")
            .stdout(Stdio::null())
            .uid(54_321)
            .current_dir("/")
            .status()
            .is_ok_and(|it| it.success())
        {
            return skipped("another user cannot run what is built here");
        }
    }
    let watching = Watching::of(&world, command);
    watching.words_to("x stands");
    mode(0o000);
    let told = watching.waits_for("unavailable");
    assert!(told["message"].as_str().unwrap().contains("Permission denied"), "{told}");
    mode(0o755);
    assert_eq!(watching.words_to("available"), ["x stands", "unavailable", "available"]);
}

#[test]
fn watch_reports_a_damaged_file_once_and_the_other_leases() {
    let world = World::new("watch-damaged");
    world.ran(world.run(&["a", "--", "true"]));
    fs::write(world.leases().join("b.entry"), "garbage").unwrap();
    let watching = Watching::start(&world, &["--json"]);
    let problem = watching.waits_for("problem");
    assert_eq!(problem["name"], "b");
    assert!(problem["message"].as_str().unwrap().contains("b.entry"), "{problem}");
    watching.waits_for("stands");
    world.ran(world.run(&["a", "--", "true"]));
    world.ran(world.run(&["c", "--", "true"]));
    watching.words_to("c released");
    fs::remove_file(world.leases().join("b.entry")).unwrap();
    watching.words_to("b stands");
    let count = watching.events().iter().filter(|event| event["event"] == "problem").count();
    assert_eq!(count, 1, "{:?}", watching.lines());
}

#[test]
fn watch_never_reports_an_older_token_after_a_newer_one() {
    let world = World::new("watch-quick");
    world.ran(world.run(&["x", "--", "true"]));
    let watching = Watching::start(&world, &["x", "--renewals", "--json"]);
    watching.words_to("x stands");
    let a = process(&world, "quick");
    let mut last = 0;
    for _ in 0..50 {
        let lease = block_on(a.lease("x").unwrap().acquire()).unwrap();
        last = lease.token().get();
        block_on(lease.release()).unwrap();
    }
    until_said(
        || watching.events().iter().any(|it| it["event"] == "released" && it["token"] == last).then_some(()),
        || format!("release of {last} in {:?}", watching.lines()),
    );
    // The same with processes that contend.
    let runs = "for n in 1 2 3 4 5 6 7 8; do $TENURE run x --ttl 5s -- true || exit 1; done";
    let started: Vec<_> = (0..3).map(|_| world.start(world.sh(runs))).collect();
    for started in started {
        assert_eq!(started.end().code, 0);
    }
    last = world.record("x").unwrap().token.get();
    until_said(
        || watching.events().iter().any(|it| it["event"] == "released" && it["token"] == last).then_some(()),
        || format!("release of {last} in {:?}", watching.lines()),
    );
    let events = watching.events();
    let tokens: Vec<u64> = events.iter().filter_map(|event| event["token"].as_u64()).collect();
    assert!(tokens.is_sorted(), "{tokens:?}");
    let count = |event: &str| events.iter().filter(|told| told["event"] == event).count();
    let (granted, missed) = (count("granted"), count("missed"));
    let ended = count("released");
    let told: Vec<_> = events.iter().map(|event| (word(event), event["token"].as_u64())).collect();
    // The end of a term that was seen while it lasted may be among the missed events.
    assert_eq!(count("died"), 0, "they released in order: {told:?}");
    assert!(granted == ended || (granted > ended && granted <= ended + missed), "{told:?}");
    assert!(
        granted == 74 || missed > 0,
        "{granted} of 74 terms, and {missed} times some were missed: {told:?}"
    );
}

#[test]
fn watch_waits_for_a_missing_store_and_does_not_create_it() {
    let world = World::new("watch-nothing");
    let watching = Watching::start(&world, &["--json"]);
    let complained = until("a complaint", PATIENCE, || {
        fs::read_to_string(&watching.err).ok().filter(|text| text.ends_with('\n'))
    });
    let said: Value = serde_json::from_str(&complained).unwrap();
    let sentence = format!("there is no store at {} yet: waiting for it", world.store_url());
    assert_eq!((&said["event"], &said["message"]), (&"waiting".into(), &sentence.into()));
    assert!(!world.leases().exists(), "reading creates nothing");
    world.ran(world.run(&["x", "--", "true"]));
    // First the state when the store is found, then the events.
    watching.waits_for("stands");
    world.ran(world.run(&["x", "--holder", "second", "--", "true"]));
    assert_eq!(watching.waits_for("granted")["holder"], "second");
}

#[test]
fn watch_ends_when_its_reader_exits_and_by_a_signal() {
    let world = World::new("watch-ends");
    world.ran(world.run(&["x", "--", "true"]));
    // There are no events after the first line.
    let piped = world.ran(world.sh("{ $TENURE watch x; echo $? > code; } | head -1"));
    assert_eq!(piped.text().lines().count(), 1, "{piped:?}");
    assert_eq!(world.told("code"), "0");
    assert_eq!(piped.err, "");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut watching = Watching::start(&world, &["x"]);
        until("the first line", PATIENCE, || (!watching.lines().is_empty()).then_some(()));
        run_support::Process::of(watching.child.id() as i32).unwrap().send(signal);
        assert_eq!(exit_code(watching.child.wait().unwrap()), code);
    }
}

#[test]
fn watch_fails_if_standard_output_cannot_be_written() {
    let world = World::new("watch-full");
    world.ran(world.run(&["x", "--", "true"]));
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return skipped("there is no /dev/full");
    };
    let output = world.tenure(&["watch", "x"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{err}");
    assert!(err.starts_with("tenure: the answer could not be written to standard output: "), "{err}");
}

#[test]
fn watch_refuses_invalid_names_and_stores() {
    let world = World::new("watch-bad");
    for (name, code, sentence) in [
        (
            "..",
            64,
            "a key must not have '.' or '..' between its slashes: write it like billing/nightly, not \"..\"",
        ),
        (
            "a//b",
            64,
            "a key must not begin or end with '/' nor contain '//': write it like billing/nightly, not \"a//b\"",
        ),
        ("a\nb", 64, "a key must not contain control characters: take them out of \"a\\nb\""),
    ] {
        let ran = world.ran(world.tenure(&["watch", name]));
        assert_eq!((ran.code, ran.err.as_str()), (code, format!("tenure: {sentence}\n").as_str()));
    }
    let mut nowhere = world.tenure(&["watch"]);
    nowhere.env("TENURE_STORE", "gopher://x");
    assert_eq!(world.ran(nowhere).code, 64);
    let mut full = world.tenure(&["watch"]);
    fs::create_dir(world.path("full")).unwrap();
    fs::write(world.path("full/thesis.txt"), "years").unwrap();
    full.env("TENURE_STORE", format!("file://{}", world.path("full").display()));
    let ran = world.ran(full);
    assert_eq!(ran.code, 64, "{}", ran.err);
    assert!(ran.err.contains("is not a store and not empty"), "{}", ran.err);
    assert!(ran.took < Duration::from_secs(20));
}
