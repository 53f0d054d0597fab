//! A writer that dies, stops or fails at any point leaves the old entry or the new, and the next writer continues.

mod file_support;

use std::collections::BTreeMap;

use tenure::clock::{BootClock, Clock};
use tenure_store::{Expect, Prefix, Put, Store, Version};

use file_support::{Call, Puppet, Scratch, Strace, be_a_puppet, block_on, calls, key, look, sleep_ms, write};

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    be_a_puppet();
}

/// A directory in which `k` holds `old`, or nothing; and the version that a puppet must expect there.
fn directory(replace: bool) -> (Scratch, String) {
    let scratch = Scratch::new("crash");
    let store = scratch.store();
    let expect = if replace {
        block_on(write(&store, &key("k"), "old", Expect::Absent)).to_string()
    } else {
        "-".to_owned()
    };
    (scratch, expect)
}

/// The system calls of one write, as the kernel sees them. Without the calls of the clean-up, which the first write of
/// a process starts beside its answer.
fn calls_of_a_write(replace: bool) -> Vec<Call> {
    let (scratch, expect) = directory(replace);
    let mut puppet = Puppet::start(&scratch.0);
    let strace = Strace::attach(&puppet, &[]);
    let answer = puppet.put("k", "new", &expect).unwrap();
    assert!(answer.starts_with("applied"), "{answer}");
    let mut calls = calls(&strace.detach());
    let cleans = |call: &Call| call.name == "openat" && call.line.contains("\".\"");
    calls.truncate(calls.iter().position(cleans).unwrap_or(calls.len()));
    assert!(calls.iter().any(|call| call.name.starts_with("rename")), "{calls:?}");
    calls
}

/// True if the new entry is there; asserts that the entry is the old or the new one. Then another writer continues.
fn old_or_new_and_goes_on(scratch: &Scratch, replace: bool, when: &str) -> bool {
    let store = scratch.store();
    block_on(async {
        let there = look(&store, &key("k")).await;
        let landed = match there.as_ref().map(|(value, _)| value.as_str()) {
            Some("new") => true,
            Some("old") if replace => false,
            None if !replace => false,
            other => panic!("{when}: {other:?}"),
        };
        let expect = there.map_or(Expect::Absent, |(_, version)| Expect::Version(version));
        let version = write(&store, &key("k"), "next", expect).await;
        assert_eq!(look(&store, &key("k")).await, Some(("next".to_owned(), version)), "{when}");
        let listed: Vec<_> = futures_util::StreamExt::collect(store.list(&Prefix::all())).await;
        assert_eq!(listed.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), [key("k")], "{when}");
        landed
    })
}

#[test]
fn a_writer_killed_before_any_of_its_calls_leaves_the_old_entry_or_the_new() {
    if !Strace::is_there() {
        return;
    }
    for replace in [false, true] {
        let calls = calls_of_a_write(replace);
        let mut landed = Vec::new();
        for Call { name, number, .. } in &calls {
            let (scratch, expect) = directory(replace);
            let mut puppet = Puppet::start(&scratch.0);
            let strace = Strace::attach(&puppet, &[format!("{name}:signal=KILL:when={number}")]);
            let answer = puppet.put("k", "new", &expect);
            // The last calls come after the answer was sent.
            let acknowledged = answer.is_some_and(|answer| answer.starts_with("applied"));
            let when = format!("killed before {name} number {number}");
            assert!(puppet.answer().is_none(), "{when}: it lives");
            drop((puppet, strace));
            let new = old_or_new_and_goes_on(&scratch, replace, &when);
            assert!(new || !acknowledged, "{when}: acknowledged and lost");
            assert!(scratch.names(".tmp").len() <= 1, "{when}: {:?}", scratch.names(".tmp"));
            landed.push(new);
        }
        assert!(landed.is_sorted(), "once it has landed it has landed: {landed:?}");
        let kind = if replace { "replace" } else { "create" };
        let new = landed.iter().filter(|landed| **landed).count();
        println!("{kind}: killed before each of {} calls; {new} times the new entry was there", calls.len());
    }
}

/// The answer of a writer is true, whichever of its calls fails, and with whichever error.
#[test]
fn a_writer_whose_call_fails_reports_the_truth() {
    if !Strace::is_there() {
        return;
    }
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for replace in [false, true] {
        // Left out: no file system fails to close an open file, and the kernel does not fail to return random numbers.
        let calls = calls_of_a_write(replace);
        for Call { name, number, .. } in
            calls.iter().filter(|call| !["close", "getrandom"].contains(&&*call.name))
        {
            for errno in ["EIO", "ENOSPC", "EMFILE", "EINTR"] {
                let (scratch, expect) = directory(replace);
                let mut puppet = Puppet::start(&scratch.0);
                let strace = Strace::attach(&puppet, &[format!("{name}:error={errno}:when={number}")]);
                let when = format!("{name} number {number} failed with {errno}");
                let answer = puppet.put("k", "new", &expect).unwrap_or_else(|| panic!("{when}: it died"));
                let log = strace.detach();
                assert!(log.contains("(INJECTED)"), "{when}: it did not: {log}");
                drop(puppet);
                let landed = old_or_new_and_goes_on(&scratch, replace, &when);
                let answer = answer.split(' ').next().unwrap();
                match answer {
                    "applied" => assert!(landed, "{when}: said applied, and is not there"),
                    "refused" => assert!(!landed, "{when}: said that it had no effect, and is there"),
                    "unknown" => {}
                    other => panic!("{when}: {other}"),
                }
                *said
                    .entry(format!("{answer}, {}", if landed { "there" } else { "not there" }))
                    .or_default() += 1;
            }
        }
    }
    println!("what was said, and what was so: {said:?}");
}

/// Strace cannot cause this error by itself, because it fails a call instead of making it. So strace stops the writer
/// in its failing call, and the test makes the call in its place.
#[test]
fn a_rename_that_the_disk_makes_and_then_fails_is_unknown_and_never_refused() {
    if !Strace::is_there() {
        return;
    }
    for replace in [false, true] {
        let calls = calls_of_a_write(replace);
        let Call { name, number, .. } = calls
            .iter()
            .rfind(|call| call.name.starts_with("rename") && call.line.contains("k.entry"))
            .unwrap();
        let (scratch, expect) = directory(replace);
        let mut puppet = Puppet::start(&scratch.0);
        let strace = Strace::attach(&puppet, &[format!("{name}:error=EIO:signal=STOP:when={number}")]);
        puppet.order_put("k", "new", &expect);
        puppet.until_stopped();
        let temporary = scratch.names(".tmp");
        assert_eq!(temporary.len(), 1, "it is stopped before its rename: {temporary:?}");
        std::fs::rename(scratch.0.join(&temporary[0]), scratch.0.join("k.entry")).unwrap();
        let log = strace.detach();
        let failed: Vec<_> = log.lines().filter(|line| line.contains("(INJECTED)")).collect();
        assert!(
            failed.len() == 1 && failed[0].contains("k.entry") && failed[0].contains("EIO"),
            "the rename of the entry has failed, and nothing else: {log}"
        );
        puppet.signal("CONT");
        let answer = puppet.answer().unwrap();
        assert!(answer.starts_with("unknown"), "the entry is there, and the answer is: {answer}");
        drop(puppet);
        assert!(old_or_new_and_goes_on(&scratch, replace, "after the failed rename"), "the rename was made");
    }
}

#[test]
fn an_entry_that_could_not_be_synced_is_not_shown_until_it_is() {
    if !Strace::is_there() {
        return;
    }
    let (scratch, expect) = directory(true);
    let mut puppet = Puppet::start(&scratch.0);
    // The first sync is of the file, the second of the directory. From then on the disk fails.
    let strace = Strace::attach_to_all(&puppet, &["fsync:error=EIO:when=2+".to_owned()]);
    let answer = puppet.put("k", "new", &expect).unwrap();
    assert!(answer.starts_with("unknown") && answer.contains("kernel's log"), "{answer}");
    let read = puppet.get("k").unwrap();
    assert!(read.starts_with("failed"), "a grant that a power cut takes back was shown: {read}");
    strace.detach();
    let read = puppet.get("k").unwrap();
    assert!(read.contains(" new "), "{read}");
    let (value, version) = block_on(look(&scratch.store(), &key("k"))).unwrap();
    assert!(value == "new" && read.contains(version.as_str()), "it is the same entry: {read}");
}

/// Covers the calls from the lock to the rename.
#[test]
fn a_writer_stopped_at_any_call_under_its_lock_blocks_no_other_and_does_no_harm_when_it_continues() {
    if !Strace::is_there() {
        return;
    }
    let calls = calls_of_a_write(true);
    let taken = calls.iter().position(|call| call.name == "flock" && call.line.contains("/k.lock>")).unwrap();
    let renamed = calls.iter().rposition(|call| call.name.starts_with("rename")).unwrap();
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for Call { name, number, .. } in &calls[taken..=renamed] {
        let when = format!("stopped at {name} number {number}");
        let (scratch, expect) = directory(true);
        let mut stopped = Puppet::start(&scratch.0);
        // The signal arrives with the call and takes effect after it.
        let strace = Strace::attach(&stopped, &[format!("{name}:signal=STOP:when={number}")]);
        stopped.order_put("k", "new", &expect);
        stopped.until_stopped();
        let store = scratch.store();
        let before = BootClock.now();
        let answer =
            block_on(store.put(&key("k"), "mine".into(), Expect::Version(Version::new(expect.as_str()))));
        let took = BootClock.now().since(before);
        let mine = matches!(answer.unwrap_or_else(|error| panic!("{when}: {error}")), Put::Applied(_));
        assert!(took.as_secs_f64() < 3.0, "{when}: it took {took:?}");
        strace.detach();
        stopped.signal("CONT");
        let answer = stopped.answer().unwrap();
        let answer = answer.split(' ').next().unwrap();
        let (value, version) = block_on(look(&store, &key("k"))).unwrap();
        match answer {
            "applied" => assert!(!mine && value == "new", "{when}: {value}"),
            "conflict" | "refused" => assert!(mine && value == "mine", "{when}: {answer}, {value}"),
            other => panic!("{when}: {other}"),
        }
        *said.entry(answer.to_owned()).or_default() += 1;
        // The stopped write leaves no trace: writers replace the key in turn as before.
        let applied = stopped.put("k", "again", version.as_str()).unwrap();
        let applied = applied.strip_prefix("applied ").unwrap_or_else(|| panic!("{when}: {applied}"));
        block_on(write(&store, &key("k"), "once more", Expect::Version(Version::new(applied))));
        assert_eq!(std::fs::metadata(scratch.0.join("k.lock")).unwrap().len(), 0, "{when}");
    }
    println!("{} calls under the lock; the stopped writer was answered: {said:?}", 1 + renamed - taken);
    assert!(said.contains_key("refused"), "none was stopped between its look and its rename: {said:?}");
}

#[test]
fn calls_with_a_short_limit_get_past_a_stopped_owner_too() {
    if !Strace::is_there() {
        return;
    }
    let calls = calls_of_a_write(true);
    let taken = calls.iter().find(|call| call.name == "flock" && call.line.contains("/k.lock>")).unwrap();
    let (scratch, expect) = directory(true);
    let mut stopped = Puppet::start(&scratch.0);
    let _strace = Strace::attach(&stopped, &[format!("flock:signal=STOP:when={}", taken.number)]);
    stopped.order_put("k", "new", &expect);
    stopped.until_stopped();
    let store = scratch.store();
    // The limit of a call at a ttl of one second. Each attempt is given up, and the next one starts over.
    let (limit, key) = (std::time::Duration::from_millis(100), key("k"));
    let applied = (0..50).any(|_| {
        let put = store.put(&key, "mine".into(), Expect::Version(Version::new(expect.as_str())));
        let given_up = std::pin::pin!(BootClock.sleep_until(BootClock.now() + limit));
        match block_on(futures_util::future::select(std::pin::pin!(put), given_up)) {
            futures_util::future::Either::Left((answer, _)) => answer.is_ok(),
            futures_util::future::Either::Right(_) => false,
        }
    });
    assert!(applied, "a process that is stopped stops its key");
}

#[test]
fn of_writers_that_are_stopped_and_continued_at_random_one_wins_each_round() {
    let scratch = Scratch::new("stops");
    let mut puppets: Vec<_> = (0..3).map(|_| Puppet::start(&scratch.0)).collect();
    let mut version = "-".to_owned();
    let mut dice = 1_u64;
    for round in 0..60 {
        for (number, puppet) in puppets.iter_mut().enumerate() {
            puppet.order_put("k", &format!("{round}-{number}"), &version);
        }
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let victim = (dice >> 33) as usize % puppets.len();
        // A write takes a few milliseconds.
        sleep_ms((dice >> 40) % 4);
        puppets[victim].signal("STOP");
        let mut answers = Vec::new();
        for (number, puppet) in puppets.iter_mut().enumerate() {
            if number != victim {
                answers.push(puppet.answer().unwrap());
            }
        }
        puppets[victim].signal("CONT");
        answers.push(puppets[victim].answer().unwrap());
        let applied: Vec<_> = answers.iter().filter_map(|answer| answer.strip_prefix("applied ")).collect();
        assert!(applied.len() <= 1, "round {round}: {answers:?}");
        let there = block_on(look(&scratch.store(), &key("k"))).map(|(_, version)| version.to_string());
        let last = applied.first().map_or(version.clone(), |version| (*version).to_owned());
        assert_eq!(there.unwrap_or_else(|| "-".to_owned()), last, "round {round}: {answers:?}");
        assert!(answers.iter().all(|answer| !answer.starts_with("unknown")), "round {round}: {answers:?}");
        version = last;
    }
    assert_ne!(version, "-", "nothing was ever applied");
}

/// All keys share one file only: the mark.
#[test]
fn a_writer_stopped_while_it_raises_the_mark_blocks_no_other() {
    if !Strace::is_there() {
        return;
    }
    let (scratch, expect) = directory(true);
    let mut stopped = Puppet::start(&scratch.0);
    let strace = Strace::attach(&stopped, &["pwrite64:signal=STOP:when=1".to_owned()]);
    stopped.order_put("k", "new", &expect);
    stopped.until_stopped();
    block_on(async {
        let store = scratch.store();
        let before = BootClock.now();
        write(&store, &key("other"), "mine", Expect::Absent).await;
        let (_, version) = look(&store, &key("k")).await.unwrap();
        write(&store, &key("k"), "mine", Expect::Version(version)).await;
        println!("two writes in {:?}", BootClock.now().since(before));
    });
    strace.detach();
    stopped.signal("CONT");
    assert_eq!(stopped.answer().as_deref(), Some("conflict"));
}

/// Eight processes increment a counter, and are killed at random. No acknowledged write is missing or applied twice.
#[test]
fn writers_killed_at_random_lose_no_acknowledged_write_and_block_no_other() {
    const WRITERS: usize = 8;
    const KILLS: usize = 150;
    let scratch = Scratch::new("random");
    let store = scratch.store();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut puppets: Vec<Puppet> = (0..WRITERS).map(|_| Puppet::start(&scratch.0)).collect();
    let (mut acknowledged, mut in_flight, mut in_the_middle) = (0_u64, 0_u64, 0);
    for _ in 0..KILLS {
        // All write at once; only one of them can win.
        let there = block_on(look(&store, &key("k")));
        let (count, expect) = match &there {
            None => (0, "-"),
            Some((value, version)) => (value.parse::<u64>().unwrap(), version.as_str()),
        };
        assert!(
            count >= acknowledged && count <= acknowledged + in_flight,
            "{count}, {acknowledged}, {in_flight}"
        );
        acknowledged = count;
        in_flight = 0;
        for puppet in &mut puppets {
            puppet.order_put("k", &(count + 1).to_string(), expect);
        }
        let victim = usize::try_from(next(WRITERS as u64)).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the kill is to come at any moment of a write")]
        std::thread::sleep(std::time::Duration::from_micros(next(1_500)));
        puppets[victim].signal("KILL");
        let mut winners = 0;
        for puppet in &mut puppets {
            match puppet.answer() {
                Some(answer) if answer.starts_with("applied") => winners += 1,
                Some(answer) => assert!(answer.starts_with("conflict"), "{answer}"),
                None => {
                    in_flight = 1;
                    in_the_middle += 1;
                }
            }
        }
        assert!(winners <= 1, "{winners} processes replaced the same version");
        assert!(winners == 1 || in_flight == 1, "no writer won, and none was killed in the attempt");
        acknowledged += winners;
        if winners == 1 {
            in_flight = 0;
        }
        puppets[victim] = Puppet::start(&scratch.0);
    }
    println!(
        "{KILLS} kills, {in_the_middle} in the middle of a write; {acknowledged} written, {} files left behind",
        scratch.names(".tmp").len()
    );
}
