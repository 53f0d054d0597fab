//! The time of the directory never goes back, and only processes that share a clock see ages.

mod file_support;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tenure::ErrorKind;
use tenure::clock::{BootClock, Clock, ManualClock, WallTime};
use tenure::store::File;
use tenure_store::{Expect, Store};

use file_support::{Puppet, Scratch, be_a_puppet, block_on, key, shell, write};

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    be_a_puppet();
}

fn open(scratch: &Scratch, clock: &ManualClock) -> File {
    File::builder().clock(Arc::new(clock.clone())).open(&scratch.0).unwrap()
}

async fn time(store: &File, name: &str) -> u64 {
    store.get(&key(name)).await.unwrap().time.unwrap().as_micros()
}

#[test]
fn the_time_is_that_of_the_wall_clock_while_it_advances() {
    let (scratch, clock) = (Scratch::new("wall"), ManualClock::new());
    let store = open(&scratch, &clock);
    block_on(async {
        for _ in 0..5 {
            clock.advance(Duration::from_secs(60));
            let told = time(&store, "k").await;
            assert_eq!(told, clock.wall().as_millis() * 1_000);
        }
    });
}

#[test]
fn a_wall_clock_set_back_does_not_set_back_the_time_of_any_key_in_any_process() {
    let (scratch, clock) = (Scratch::new("back"), ManualClock::new());
    block_on(async {
        let store = open(&scratch, &clock);
        let mut latest = time(&store, "a").await;
        write(&store, &key("a"), "value", Expect::Absent).await;
        for round in 0..5 {
            clock.set_wall(WallTime::from_millis(clock.wall().as_millis() - 3_600_000));
            // A store that is opened again stands for another process, and for a process that starts after a reboot.
            for (store, name) in
                [(&store, "a"), (&open(&scratch, &clock), "a"), (&open(&scratch, &clock), "never written")]
            {
                let told = time(store, name).await;
                assert!(told > latest, "round {round}, {name}: {told} after {latest}");
            }
            latest = time(&store, "a").await;
            write(&store, &key(&format!("b{round}")), "value", Expect::Absent).await;
            assert!(time(&open(&scratch, &clock), "new").await > latest, "each write raises the mark");
        }
    });
}

/// A token may be derived from any reported time. So the store must not report a time again after a write that could
/// carry it.
#[test]
fn the_time_after_a_write_is_greater_than_before_even_if_the_clock_stands_still() {
    let (scratch, clock) = (Scratch::new("still"), ManualClock::new());
    block_on(async {
        let (one, two) = (open(&scratch, &clock), open(&scratch, &clock));
        for round in 0..50 {
            let told = time(&one, "k").await.max(time(&two, "k").await);
            write(&one, &key(&format!("k{round}")), "value", Expect::Absent).await;
            for store in [&one, &two, &open(&scratch, &clock)] {
                let after = time(store, "k").await;
                assert!(after > told, "{after} after {told}");
            }
        }
    });
}

#[test]
fn the_time_after_a_write_is_greater_than_the_writer_saw_even_if_the_clock_was_set_back() {
    let (scratch, clock) = (Scratch::new("between"), ManualClock::new());
    block_on(async {
        let (one, two) = (open(&scratch, &clock), open(&scratch, &clock));
        for round in 0..5 {
            let early = clock.wall();
            clock.advance(Duration::from_secs(3_600));
            let told = time(&one, "k").await;
            assert_eq!(told, clock.wall().as_millis() * 1_000, "round {round}: no write has carried it yet");
            clock.set_wall(early);
            write(&one, &key(&format!("k{round}")), "value", Expect::Absent).await;
            for store in [&one, &two, &open(&scratch, &clock)] {
                let after = time(store, "k").await;
                assert!(after > told, "round {round}: {after} after {told}");
            }
            clock.advance(Duration::from_secs(7_200));
        }
    });
}

#[test]
fn running_processes_correct_a_mark_that_is_deleted_damaged_or_restored() {
    let (scratch, clock) = (Scratch::new("mark"), ManualClock::new());
    let mark = scratch.0.join("tenure.mark");
    block_on(async {
        let store = open(&scratch, &clock);
        let early = std::fs::read(&mark).unwrap();
        clock.advance(Duration::from_secs(3_600));
        write(&store, &key("a"), "value", Expect::Absent).await;
        let latest = time(&store, "a").await;
        clock.set_wall(WallTime::from_millis(1_000_000));
        for (number, harm) in
            [None, Some(b"rubbish".to_vec()), Some(Vec::new()), Some(early)].into_iter().enumerate()
        {
            std::fs::remove_file(&mark).unwrap();
            if let Some(bytes) = harm {
                std::fs::write(&mark, bytes).unwrap();
            }
            assert!(time(&store, "a").await >= latest);
            write(&store, &key(&format!("b{number}")), "value", Expect::Absent).await;
            assert!(time(&open(&scratch, &clock), "a").await > latest, "harm {number} was made good");
        }
    });
}

#[test]
fn ages_count_from_the_write_for_every_process_on_the_same_clock() {
    let (scratch, clock) = (Scratch::new("age"), ManualClock::new());
    block_on(async {
        let (one, two) = (open(&scratch, &clock), open(&scratch, &clock));
        let first = write(&one, &key("k"), "value", Expect::Absent).await;
        clock.advance(Duration::from_secs(7));
        let age = async |store: &File| store.get(&key("k")).await.unwrap().entry.unwrap().age;
        assert_eq!(age(&two).await, Some(Duration::from_secs(7)));
        clock.set_wall(WallTime::from_millis(0));
        assert_eq!(age(&one).await, Some(Duration::from_secs(7)), "whatever the wall clock does");
        write(&two, &key("k"), "next", Expect::Version(first)).await;
        assert_eq!(age(&one).await, Some(Duration::ZERO));
    });
}

#[test]
fn a_process_in_another_time_namespace_neither_sees_nor_gives_an_age() {
    let namespace = "unshare --time --boottime 86400 --fork --";
    if !shell(&format!("{namespace} true")) {
        file_support::skipped("no time namespaces here");
        return;
    }
    let scratch = Scratch::new("namespace");
    let mut here = Puppet::start(&scratch.0);
    let mut there = Command::new("unshare");
    there.args(["--time", "--boottime", "86400", "--fork", "--kill-child", "--"]);
    there.arg(std::env::current_exe().unwrap());
    let mut there = Puppet::start_with(there, &scratch.0);
    assert!(here.put("a", "value", "-").unwrap().starts_with("applied"));
    assert!(there.put("b", "value", "-").unwrap().starts_with("applied"));
    for (puppet, own, other) in [(&mut here, "a", "b"), (&mut there, "b", "a")] {
        let answer = puppet.get(own).unwrap();
        assert!(answer.contains("age Some("), "{answer}");
        let answer = puppet.get(other).unwrap();
        assert!(answer.ends_with("age None"), "a day is between their clocks: {answer}");
    }
}

// ── directories that several clocks share ───────────────────────────────────────────────────────────────────────────

/// Microseconds that the first program of a boot adds, because the mark may have lost as much.
const ADDED: u64 = 20_000_000;

/// Creates a directory whose time is ahead of the clock, because the clock was set back by five minutes. Returns that
/// time.
fn clock_set_back(scratch: &Scratch) -> u64 {
    let clock = ManualClock::new();
    clock.set_wall(WallTime::from_millis(BootClock::new().wall().as_millis() + 300_000));
    block_on(async {
        let store = open(scratch, &clock);
        write(&store, &key("first"), "value", Expect::Absent).await;
        time(&store, "first").await
    })
}

/// Microseconds by which the time of the directory is later than before.
fn ahead(puppet: &mut Puppet, before: u64) -> u64 {
    let answer = puppet.get("k").unwrap();
    let told: u64 = answer.split(' ').next().unwrap().parse().unwrap();
    // Each write adds a few microseconds at most.
    told - before - 1_000.min(told - before)
}

/// A process that reads another boot id, as in a systemd-nspawn container.
fn with_boot_id(scratch: &Scratch, id: usize) -> Puppet {
    let file = scratch.0.with_extension(format!("boot-{id}"));
    std::fs::write(&file, format!("0f3c7a52-1b7e-4f0e-9a53-{id:012x}\n")).unwrap();
    let mut command = Command::new("unshare");
    let script =
        format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"", file.display());
    command.args(["--mount", "sh", "-c", &script]).arg(std::env::current_exe().unwrap());
    let puppet = Puppet::start_with(command, &scratch.0);
    std::fs::remove_file(file).unwrap();
    puppet
}

/// Sixty writes by each puppet, in turn.
fn alternate(puppets: &mut [Puppet]) {
    for round in 0..60 {
        for (number, puppet) in puppets.iter_mut().enumerate() {
            let answer = puppet.put(&format!("k{number}-{round}"), "value", "-").unwrap();
            assert!(answer.starts_with("applied"), "{answer}");
        }
    }
}

#[test]
fn two_boot_ids_that_share_a_directory_put_its_time_ahead_once_and_not_with_every_write() {
    if !shell("unshare --mount true") {
        file_support::skipped("no mount namespaces here");
        return;
    }
    let scratch = Scratch::new("boots");
    let before = clock_set_back(&scratch);
    let mut puppets = [with_boot_id(&scratch, 1), with_boot_id(&scratch, 2)];
    alternate(&mut puppets);
    let ahead = ahead(&mut puppets[0], before);
    assert!((2 * ADDED - 1_000..=2 * ADDED).contains(&ahead), "{} s ahead", ahead / 1_000_000);
}

#[test]
fn two_time_namespaces_that_share_a_directory_do_not_put_its_time_ahead() {
    let namespace = ["--time", "--boottime", "86400", "--fork", "--kill-child", "--"];
    if !shell(&format!("unshare {} true", namespace.join(" "))) {
        file_support::skipped("no time namespaces here");
        return;
    }
    let scratch = Scratch::new("namespaces");
    let before = clock_set_back(&scratch);
    let mut there = Command::new("unshare");
    there.args(namespace).arg(std::env::current_exe().unwrap());
    let mut puppets = [Puppet::start(&scratch.0), Puppet::start_with(there, &scratch.0)];
    alternate(&mut puppets);
    let ahead = ahead(&mut puppets[0], before);
    assert_eq!(ahead, 0, "{} s ahead", ahead / 1_000_000);
}

#[test]
fn any_number_of_boot_ids_puts_the_time_of_a_directory_ahead_by_a_few_minutes_at_most() {
    if !shell("unshare --mount true") {
        file_support::skipped("no mount namespaces here");
        return;
    }
    let scratch = Scratch::new("many-boots");
    let before = clock_set_back(&scratch);
    let mut puppets: Vec<_> = (0..14).map(|id| with_boot_id(&scratch, id)).collect();
    for round in 0..5 {
        for (number, puppet) in puppets.iter_mut().enumerate() {
            assert!(puppet.put(&format!("k{number}-{round}"), "v", "-").unwrap().starts_with("applied"));
        }
    }
    let ahead = ahead(&mut puppets[0], before);
    // The boot that created the mark has the first of ten places, and added nothing.
    assert!((9 * ADDED - 1_000..=9 * ADDED).contains(&ahead), "{} s ahead", ahead / 1_000_000);
}

// ── clocks with impossible times ────────────────────────────────────────────────────────────────────────────────────

/// A time that no clock may report.
const YEAR_2200: WallTime = WallTime::from_millis(7_258_118_400_000);

#[test]
fn a_clock_that_was_once_set_to_the_year_2200_does_not_change_the_time_of_the_directory() {
    let (scratch, clock) = (Scratch::new("future"), ManualClock::new());
    let right = clock.wall();
    block_on(async {
        let store = open(&scratch, &clock);
        write(&store, &key("a"), "value", Expect::Absent).await;
        let before = time(&store, "a").await;
        clock.set_wall(YEAR_2200);
        for store in [&store, &open(&scratch, &clock)] {
            let told = time(store, "a").await;
            assert!(told.abs_diff(before) < 1_000, "{told} after {before}: it counts on");
        }
        write(&store, &key("b"), "value", Expect::Absent).await;
        clock.set_wall(WallTime::from_millis(right.as_millis() + 60_000));
        for store in [&store, &open(&scratch, &clock)] {
            let told = time(store, "a").await;
            assert!(told > before && told < before + 120_000_000, "{told}: the clock is right again");
        }
    });
}

#[test]
fn the_token_of_a_record_that_was_moved_away_does_not_go_back_after_a_wrong_clock() {
    let (scratch, clock) = (Scratch::new("token"), ManualClock::new());
    block_on(async {
        let grant = async || {
            let coordinator = tenure::Coordinator::connect(open(&scratch, &clock)).await.unwrap();
            let lease = coordinator.lease("k").unwrap().acquire().await.unwrap();
            let token = lease.token().get();
            lease.release().await.unwrap();
            token
        };
        let right = clock.wall();
        let first = grant().await;
        clock.set_wall(YEAR_2200);
        let second = grant().await;
        clock.set_wall(right);
        std::fs::rename(scratch.0.join("k.entry"), scratch.0.join("k.entry.away")).unwrap();
        let third = grant().await;
        assert!(first < second && second < third, "{first}, {second}, {third}");
    });
}

/// The mark as version 0.1.0 left it. Its time is beyond the permitted range, so a program would ignore it for ever.
#[test]
fn a_mark_of_the_year_2200_is_corrupt_and_the_message_says_what_to_do() {
    let (scratch, clock) = (Scratch::new("corrupt"), ManualClock::new());
    drop(open(&scratch, &clock));
    let mark = scratch.0.join("tenure.mark");
    let early = "tenure-mark 1 07258118400000001 07258118400000001 0f3c7a52-1b7e-4f0e-9a53-0d6a1c1f2b3d,time:[1]+0.0 SUM\n";
    for (line, word) in [
        (early.replace("SUM", EARLY_SUM), "the year 2200"),
        ("rubbish".to_owned(), "not that of a mark"),
        (String::new(), "empty"),
    ] {
        std::fs::write(&mark, &line).unwrap();
        let error = File::builder().clock(Arc::new(clock.clone())).open(&scratch.0).unwrap_err();
        println!("{error}");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        for word in [word, mark.to_str().unwrap(), "move the file away"] {
            assert!(error.to_string().contains(word), "{word:?} is missing: {error}");
        }
        assert_eq!(std::fs::read_to_string(&mark).unwrap(), line, "it was written to");
        // Opening for reads needs no time.
        assert!(File::builder().open_to_read(&scratch.0).unwrap().is_some());
    }
    std::fs::remove_file(&mark).unwrap();
    open(&scratch, &clock);
}

/// The checksum of the line above.
const EARLY_SUM: &str = "312940870b90d8cf";
