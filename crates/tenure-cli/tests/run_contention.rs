//! A hundred supervisors want one lease, and the one that has it is killed, stopped and stolen from all the time.
//!
//! Who acts is written down by those who act: each line is one write to the end of one file, so the order of the lines is
//! the order of the acts. The kernel keeps a second book: each child and what it leaves behind hold a lock that is free
//! only when all of them are dead.
//!
//! `TENURE_TEST_FAULTS=2000` runs longer, `TENURE_TEST_SEED=7` chooses other faults.
#![expect(clippy::disallowed_methods, reason = "the tests give other processes time")]

mod run_support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use run_support::{
    PATIENCE, Process, World, appending, block_on, code_of, is_running, key, parent_of, skipped, sleep_ms,
    watchdog_of,
};
use rustix::process::Signal;
use tenure::record::decode;
use tenure_store::Store;

/// How many want it at any time.
const SUPERVISORS: usize = 100;

/// Short, so that a dead holder costs little time; long enough for two cores with three hundred processes.
const TTL: Duration = Duration::from_millis(2000);

// ── the child ───────────────────────────────────────────────────────────────────────────────────────────────────────

const LOG: &str = "TENURE_TEST_LOG";

/// Not a test: what runs under the lease, when it is started as such.
#[test]
#[expect(clippy::zombie_processes, reason = "what is left behind is for the command to end")]
fn child() {
    let Some(log) = std::env::var_os(LOG) else { return };
    let token = std::env::var("TENURE_TOKEN").unwrap();
    let act = |what: &str| {
        let mut log = OpenOptions::new().append(true).open(&log).unwrap();
        log.write_all(format!("{what} {token}\n").as_bytes()).unwrap();
    };
    act("start");
    let probe = OpenOptions::new().append(true).open("probe").unwrap();
    if probe.try_lock().is_err() {
        act("overlap");
    }
    let mut rng = fastrand::Rng::with_seed(std::process::id().into());
    if rng.u8(..3) == 0 {
        // It is left behind, has the lock too, and does not end when it is asked to.
        let mut left = Command::new("sh");
        left.args(["-c", "trap '' TERM; exec setsid sleep 60"]).stdin(probe.try_clone().unwrap());
        left.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    }
    let supervisor = parent_of(std::os::unix::process::parent_id() as i32).unwrap_or(0);
    let began = Instant::now();
    let mut left = rng.u32(5..50);
    while left > 0 && began.elapsed() < 5 * TTL {
        sleep_ms(10);
        act("act");
        // While its supervisor is stopped or dead it does not end by itself: somebody has to end it.
        if is_running(supervisor) {
            left -= 1;
        }
    }
    act("end");
    std::process::exit(0);
}

// ── the checker ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// What the log shows.
#[derive(Debug, Default)]
struct Seen {
    grants: usize,
    acts: usize,
    ends: usize,
    violations: Vec<String>,
}

/// Nobody acts after the next one has started, tokens only grow, and the lock was always free.
fn check(log: &str) -> Seen {
    let mut seen = Seen::default();
    let (mut present, mut has_ended) = (0, true);
    for (number, line) in log.lines().enumerate() {
        let (what, token) = line.split_once(' ').expect("whole lines");
        let token: u64 = token.parse().expect("a token");
        let mut wrong = |why: &str| seen.violations.push(format!("line {}: {line}: {why}", number + 1));
        match what {
            "start" if token <= present => wrong("the token did not grow"),
            "start" => (present, has_ended) = (token, false),
            "overlap" => wrong("somebody of an earlier term was alive"),
            _ if token != present => wrong("somebody else had started"),
            _ if has_ended => wrong("it had ended"),
            _ => {}
        }
        match what {
            "start" => seen.grants += 1,
            "act" => seen.acts += 1,
            "end" => (seen.ends, has_ended) = (seen.ends + 1, true),
            _ => {}
        }
    }
    seen
}

#[test]
fn the_checker_sees_what_it_must_see() {
    let good = "start 5\nact 5\nend 5\nstart 6\nact 6\nstart 9\nend 9\n";
    let seen = check(good);
    assert_eq!((seen.grants, seen.acts, seen.ends), (3, 2, 2));
    assert!(seen.violations.is_empty());
    for bad in [
        "start 5\nstart 5\n",
        "start 5\nend 5\nstart 4\n",
        "start 5\nstart 6\nact 5\n",
        "start 5\nstart 6\nend 5\n",
        "start 5\noverlap 5\n",
        "start 5\nend 5\nact 5\n",
    ] {
        assert_eq!(check(bad).violations.len(), 1, "{bad}");
    }
}

// ── the hundred ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Those who want the lease.
struct Crowd<'a> {
    world: &'a World,
    members: BTreeMap<String, Child>,
    started: usize,
    codes: BTreeMap<i32, usize>,
}

impl Crowd<'_> {
    fn fill(&mut self) {
        while self.members.len() < SUPERVISORS {
            self.add(&["run", "one"]);
        }
    }

    /// One more, who takes the lease from whoever holds it.
    fn steal(&mut self) {
        self.add(&["steal", "one", "--reason", "it is my turn", "--quiet"]);
    }

    fn add(&mut self, how: &[&str]) {
        let name = format!("s{}", self.started);
        self.started += 1;
        // Every second one does not heed TERM.
        let script = "[ $(($$ % 2)) = 0 ] && trap '' TERM; exec \"$CHILD\" --exact child --nocapture";
        let ttl = format!("{}ms", TTL.as_millis());
        let mut command = self.world.tenure(how);
        command.args(["--ttl", &ttl, "--kill-grace", "300ms", "--holder", &name, "--", "sh", "-c", script]);
        command.env("CHILD", std::env::current_exe().unwrap()).env(LOG, self.world.path("log"));
        command.stdout(Stdio::null()).stderr(appending(&self.world.path("said")));
        self.members.insert(name, command.spawn().unwrap());
    }

    /// Takes out those who have ended.
    fn reap(&mut self) {
        let codes = &mut self.codes;
        self.members.retain(|_, child| match child.try_wait().unwrap() {
            Some(status) => {
                *codes.entry(code_of(status)).or_default() += 1;
                false
            }
            None => true,
        });
    }

    fn supervisor(&self, name: &str) -> Option<Process> {
        Process::of(self.members.get(name)?.id() as i32)
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        for child in self.members.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The present holder by the record: its token and its name.
fn present(store: &tenure::store::File) -> Option<(u64, String)> {
    let entry = block_on(async { store.get(&key("one")).await }).unwrap().entry?;
    let record = decode(&entry.value).unwrap();
    record.is_held().then(|| (record.token.get(), record.holder.unwrap().id().to_string()))
}

/// One crowd at a time: two would only take each other's cores.
static ALONE: Mutex<()> = Mutex::new(());

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn a_hundred_supervisors_never_overlap_whatever_happens_to_the_holder() {
    let (goal, seed) = (setting("TENURE_TEST_FAULTS", 60), setting("TENURE_TEST_SEED", 4));
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let world = World::new("hundred");
    let store = world.store();
    for name in ["log", "probe", "said"] {
        fs::write(world.path(name), "").unwrap();
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut crowd = Crowd { world: &world, members: BTreeMap::new(), started: 0, codes: BTreeMap::new() };
    let mut faults: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = 0;
    let mut hit = BTreeSet::new();
    let mut stopped: Vec<(Instant, u64, &str, Process)> = Vec::new();
    let mut last = Instant::now();
    let began = Instant::now();
    while count < goal {
        assert!(
            last.elapsed() < PATIENCE,
            "no fault could be made for {PATIENCE:?}: nobody new holds it (seed {seed})"
        );
        crowd.reap();
        crowd.fill();
        let now = Instant::now();
        let due: Vec<_> = stopped.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, token, whom, process) in due {
            let is_present = present(&store).is_some_and(|(present, _)| present == token);
            process.send(Signal::CONT);
            let which = if is_present { "in time" } else { "too late" };
            *faults.entry(format!("CONT {whom}, {which}")).or_default() += 1;
        }
        let Some((token, name)) = present(&store).filter(|(token, _)| !hit.contains(token)) else {
            sleep_ms(1);
            continue;
        };
        // Some are hit between the grant and the start of their child, the others somewhere in its life.
        let early = rng.u8(..4) == 0;
        if !early {
            sleep_ms(rng.u64(..300));
        }
        if rng.u8(..5) == 0 {
            crowd.steal();
            hit.insert(token);
            count += 1;
            last = Instant::now();
            *faults.entry("steal".to_owned()).or_default() += 1;
            continue;
        }
        let whom = if rng.bool() { "supervisor" } else { "watchdog" };
        let (kind, signal) =
            *rng.choice(&[("STOP", Signal::STOP), ("KILL", Signal::KILL), ("TERM", Signal::TERM)]).unwrap();
        let Some(supervisor) = crowd.supervisor(&name) else { continue };
        let target = if whom == "watchdog" { watchdog_of(supervisor.number) } else { Some(supervisor) };
        let Some(target) = target.filter(|target| !target.is_dead()) else { continue };
        // It may have let go meanwhile. Only faults on the present holder count.
        if present(&store).is_none_or(|(present, _)| present != token) || !target.send(signal) {
            continue;
        }
        hit.insert(token);
        count += 1;
        last = Instant::now();
        *faults.entry(format!("{kind} {whom}")).or_default() += 1;
        if kind == "STOP" {
            let span = Duration::from_millis(rng.u64(50..2 * TTL.as_millis() as u64));
            stopped.push((Instant::now() + span, token, whom, target));
        }
    }
    for (.., process) in stopped {
        process.send(Signal::CONT);
    }
    let took = began.elapsed();
    // Whoever waits gives up, and whoever holds it passes it on.
    let asked = Instant::now();
    while !crowd.members.is_empty() {
        for child in crowd.members.values() {
            if let Some(process) = Process::of(child.id() as i32) {
                process.send(Signal::TERM);
            }
        }
        sleep_ms(100);
        crowd.reap();
        assert!(asked.elapsed() < PATIENCE, "some do not end: {:?} (seed {seed})", world.alive());
    }
    world.is_empty_soon();
    let log = fs::read_to_string(world.path("log")).unwrap();
    let seen = check(&log);
    let said = fs::read_to_string(world.path("said")).unwrap();
    eprintln!(
        "seed {seed}: {count} faults on the present holder in {took:.1?}: {faults:?}; {} supervisors, {} grants, {} acts, {} \
         ends, exit codes {:?}; {} violations",
        crowd.started,
        seen.grants,
        seen.acts,
        seen.ends,
        crowd.codes,
        seen.violations.len()
    );
    assert!(seen.violations.is_empty(), "seed {seed}: {:#?}\n{log}\n{said}", seen.violations);
    assert!(seen.grants as u64 >= goal / 2, "too few grants to mean anything: {seen:?}\n{said}");
    assert!(!said.contains("panicked"), "{said}");
    let stolen = said.lines().filter(|line| line.contains("took it on purpose: it is my turn")).count();
    eprintln!("{stolen} were told that it was taken on purpose");
    assert!(stolen > 0 || faults.get("steal").is_none_or(|count| *count < 5), "nobody was told\n{said}");
    let known = [0, 69, 76, 137, 143];
    assert!(crowd.codes.keys().all(|code| known.contains(code)), "{:?}\n{said}", crowd.codes);
}

#[test]
fn a_counter_that_a_thousand_increment_one_at_a_time_is_a_thousand() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let world = World::new("counter");
    let (count, at_once) = (setting("TENURE_TEST_COUNT", 1000), 50);
    if !world.sh("command -v xargs && command -v seq").stdout(Stdio::null()).status().unwrap().success() {
        return skipped("no xargs or seq here");
    }
    fs::write(world.path("c"), "0\n").unwrap();
    let began = Instant::now();
    let script = format!(
        "seq {count} | xargs -P {at_once} -I{{}} \"$TENURE\" run counter -- sh -c 'n=$(cat c); echo $((n+1)) > c'"
    );
    let ran = world.start(world.sh(&script)).end_within(PATIENCE * 10);
    eprintln!("{count} increments, {at_once} at a time, in {:.1?}", began.elapsed());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(world.told("c"), count.to_string());
    world.is_empty_soon();
}
