//! The folder's time never goes back, and ages are told only between those who share a clock.

mod file_support;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use file_support::{Puppet, Scratch, be_a_puppet, block_on, key, shell, write};
use tenure::clock::{Clock, ManualClock, WallTime};
use tenure::store::File;
use tenure_store::{Expect, Store};

#[test]
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
fn the_time_is_that_of_the_wall_clock_as_long_as_it_goes_forward() {
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
fn a_wall_clock_set_back_does_not_take_the_time_with_it_for_any_key_in_any_process() {
    let (scratch, clock) = (Scratch::new("back"), ManualClock::new());
    block_on(async {
        let store = open(&scratch, &clock);
        let mut latest = time(&store, "a").await;
        write(&store, &key("a"), "value", Expect::Absent).await;
        for round in 0..5 {
            clock.set_wall(WallTime::from_millis(clock.wall().as_millis() - 3_600_000));
            // What is opened anew stands for another process, and for one that starts after a reboot.
            for (store, name) in
                [(&store, "a"), (&open(&scratch, &clock), "a"), (&open(&scratch, &clock), "never written")]
            {
                let told = time(store, name).await;
                assert!(told >= latest, "round {round}, {name}: {told} after {latest}");
            }
            latest = time(&store, "a").await;
            write(&store, &key(&format!("b{round}")), "value", Expect::Absent).await;
            assert!(time(&open(&scratch, &clock), "new").await > latest, "each write raises the mark");
        }
    });
}

/// A token may be made of any time that was told, so it must not be told again once a write could have carried it.
#[test]
fn what_was_told_before_a_write_is_less_than_what_is_told_after_it_though_the_clock_stands_still() {
    let (scratch, clock) = (Scratch::new("still"), ManualClock::new());
    block_on(async {
        let (one, two) = (open(&scratch, &clock), open(&scratch, &clock));
        for round in 0..50 {
            let told = time(&one, "k").await.max(time(&two, "k").await);
            write(&one, &key(&format!("k{round}")), "value", Expect::Absent).await;
            clock.set_wall(WallTime::from_millis(1_000_000));
            let after = time(&open(&scratch, &clock), "k").await;
            assert!(after >= told, "{after} after {told}");
        }
    });
}

#[test]
fn a_mark_that_is_deleted_damaged_or_restored_is_made_up_for_by_those_who_remember() {
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
fn ages_count_from_the_write_for_everybody_on_the_same_clock() {
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
fn nobody_in_another_time_namespace_is_told_an_age_nor_tells_one() {
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
