//! Observations on this machine count: for programs that read once and exit, on stores that report no age.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure::clock::{Clock, Domain, Instant, ManualClock, WallTime};
use tenure::record::{self, Nonce, Record, State, Ttl};
use tenure::{Coordinator, Drift, ErrorKind, Holder, Logbook, Prefix, Standing, Token};
use tenure_store::{BoxFuture, Expect, Key, Store, StoreClock};

use support::World;

const TTL: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

/// A directory for logbooks; deleted when dropped.
struct Desk(PathBuf);

impl Desk {
    fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = format!("tenure-logbook-{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn directory(&self) -> PathBuf {
        self.0.join("logbook")
    }

    fn logbook(&self) -> Logbook {
        Logbook::in_directory(self.directory())
    }

    /// The only page in the directory.
    fn page(&self) -> PathBuf {
        let files = fs::read_dir(self.directory()).unwrap().map(|entry| entry.unwrap().path());
        let pages: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
        assert_eq!(pages.len(), 1, "{pages:?}");
        pages.into_iter().next().unwrap()
    }

    /// A new program, which has observed nothing itself.
    async fn process(&self, world: &World, name: &str) -> Coordinator {
        connect(world, name, self.logbook(), Arc::new(world.clock.clone())).await
    }

    /// A program that does not wait: it starts, tries once, and exits.
    async fn tries(&self, world: &World, key: &str) -> Result<u64, ErrorKind> {
        let process = self.process(world, "cron").await;
        let tried = process.lease(key).unwrap().ttl(TTL).try_acquire().await;
        assert_eq!(process.logbook_error(), None);
        let granted = tried.map(|lease| lease.token().get()).map_err(|error| error.kind());
        process.shutdown().await.unwrap();
        granted
    }

    /// A program that only reads.
    async fn looks(&self, world: &World, key: &str) -> Standing {
        let process = self.process(world, "status").await;
        let standing = process.observe(key).await.unwrap().standing;
        assert_eq!(process.logbook_error(), None);
        standing
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn connect(world: &World, name: &str, logbook: Logbook, clock: Arc<dyn Clock>) -> Coordinator {
    let builder = Coordinator::builder().clock(clock).holder(Holder::new(name).unwrap());
    builder.logbook(logbook).connect(world.memory.clone()).await.unwrap()
}

fn clockless() -> World {
    World::with_store_clock(StoreClock::Nothing)
}

/// A record that a dead holder left behind.
fn held(nonce: u128, token: u64, holder: &str) -> Record {
    let (nonce, at) = (Nonce::from_bits(nonce), WallTime::from_millis(1_767_225_600_000));
    let mut record = Record::new(Token::new(token).unwrap(), nonce, at);
    (record.state, record.term, record.sequence, record.granted_at) = (State::Held, nonce, 1, at);
    record.ttl = Ttl::from_millis(TTL.as_millis() as u64);
    record.holder = Some(Arc::new(Holder::new(holder).unwrap()));
    record
}

/// A holder takes the key and never writes again.
async fn dies_holding(world: &World, key: &str) {
    let key = Key::parse(key).unwrap();
    let value = record::encode(&held(7, 1, "dead"));
    assert!(matches!(
        world.memory.put(&key, value, Expect::Absent).await.unwrap(),
        tenure_store::Put::Applied(_)
    ));
}

/// Time to observe a version before it has run out.
fn runs_out_after() -> Duration {
    Drift::DEFAULT.lengthen(TTL)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_never_waits_gets_the_lease_of_a_dead_holder_after_one_ttl() {
    for clock in [StoreClock::Nothing, StoreClock::Floors] {
        let (world, desk) = (World::with_store_clock(clock), Desk::new("cron"));
        dies_holding(&world, "k").await;
        let began = world.clock.now();
        let mut tries = 0;
        while let Err(kind) = desk.tries(&world, "k").await {
            assert_eq!(kind, ErrorKind::Held);
            tries += 1;
            assert!(tries < 20, "it stays held");
            world.clock.advance(SECOND);
        }
        let waited = world.clock.now().since(began);
        assert!(waited >= runs_out_after(), "after {waited:?}, which is too early");
        assert!(waited <= runs_out_after() + SECOND, "after {waited:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn not_a_nanosecond_before_the_ttl_and_the_drift_have_passed() {
    let (world, desk) = (clockless(), Desk::new("early"));
    dies_holding(&world, "k").await;
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    world.clock.advance(runs_out_after() - Duration::from_nanos(1));
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    world.clock.advance(Duration::from_nanos(1));
    assert_eq!(desk.tries(&world, "k").await, Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_logbook_the_lease_of_a_dead_holder_stays_held_for_ever() {
    let world = clockless();
    dies_holding(&world, "k").await;
    for _ in 0..20 {
        let process = world.process("cron").await;
        let error = process.lease("k").unwrap().ttl(TTL).try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held);
        world.clock.advance(SECOND);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_renews_is_never_judged_run_out() {
    let (world, desk) = (clockless(), Desk::new("renews"));
    let holder = world.process("holder").await;
    let lease = holder.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    for _ in 0..25 {
        assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
        assert!(desk.looks(&world, "k").await.is_held());
        world.clock.advance(2 * SECOND);
        lease.renew().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_observation_reports_the_remaining_time_and_then_that_it_has_run_out() {
    let (world, desk) = (clockless(), Desk::new("looks"));
    dies_holding(&world, "k").await;
    let first = desk.looks(&world, "k").await.remaining().unwrap();
    assert_eq!((first.judged, first.at_most), (false, runs_out_after()));
    world.clock.advance(4 * SECOND);
    let second = desk.looks(&world, "k").await.remaining().unwrap();
    assert_eq!((second.judged, second.at_most), (true, runs_out_after() - 4 * SECOND));
    world.clock.advance(TTL);
    assert_eq!(desk.looks(&world, "k").await, Standing::RanOut);
    // The observation of a program that only reads counts for a contender.
    assert_eq!(desk.tries(&world, "k").await, Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contender_that_gives_up_or_is_interrupted_leaves_its_observation_behind() {
    for interrupted in [false, true] {
        let (world, desk) = (clockless(), Desk::new("waits"));
        dies_holding(&world, "k").await;
        let process = desk.process(&world, "waiter").await;
        let request = process.lease("k").unwrap().ttl(TTL).wait(5 * SECOND);
        if interrupted {
            tokio::select! {
                _ = request.acquire() => panic!("it is held"),
                () = world.pass(4 * SECOND) => {}
            }
        } else {
            let (granted, ()) = tokio::join!(request.acquire(), world.pass(5 * SECOND));
            assert_eq!(granted.unwrap_err().kind(), ErrorKind::Held);
        }
        process.shutdown().await.unwrap();
        world.clock.advance(6 * SECOND + runs_out_after() - TTL);
        assert_eq!(desk.tries(&world, "k").await, Ok(2), "interrupted: {interrupted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_equal_version_with_another_nonce_is_another_version() {
    let (world, desk) = (clockless(), Desk::new("nonce"));
    dies_holding(&world, "k").await;
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    world.clock.advance(2 * TTL);
    // The same version, as from a store that restarts its count: the page names another nonce.
    let page = desk.page();
    let (text, nonce) = (fs::read_to_string(&page).unwrap(), Nonce::from_bits(7).to_string());
    assert!(text.contains(&nonce));
    rewrite(&page, &text.replace(&nonce, &Nonce::from_bits(8).to_string()));
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_reports_ages_needs_no_logbook_and_none_is_created() {
    let (world, desk) = (World::with_store_clock(StoreClock::Ages), Desk::new("aged"));
    dies_holding(&world, "k").await;
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    assert!(desk.looks(&world, "k").await.is_held());
    assert!(!desk.directory().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn free_keys_are_not_remembered() {
    let (world, desk) = (clockless(), Desk::new("free"));
    assert_eq!(desk.looks(&world, "k").await, Standing::Absent);
    assert!(desk.tries(&world, "k").await.is_ok());
    assert_eq!(desk.looks(&world, "k").await, Standing::Vacant);
    assert!(!desk.directory().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_listed_keys_do_not_push_out_the_wanted_one() {
    let (world, desk) = (clockless(), Desk::new("many"));
    let record = record::encode(&held(7, 1, "dead"));
    for number in 0..10_000 {
        let key = Key::parse(&format!("many/{number:05}")).unwrap();
        let put = world.memory.put(&key, record.clone(), Expect::Absent).await.unwrap();
        assert!(matches!(put, tenure_store::Put::Applied(_)));
    }
    dies_holding(&world, "wanted").await;
    let list = async || {
        let process = desk.process(&world, "ls").await;
        assert_eq!(process.observe_all(&Prefix::parse("").unwrap()).await.unwrap().len(), 10_001);
        assert_eq!(process.logbook_error(), None);
    };
    list().await;
    assert_eq!(desk.tries(&world, "wanted").await, Err(ErrorKind::Held));
    list().await;
    assert!(fs::metadata(desk.page()).unwrap().len() <= 256 * 1024);
    world.clock.advance(runs_out_after());
    list().await;
    assert_eq!(desk.tries(&world, "wanted").await, Ok(2));
    assert!(fs::metadata(desk.page()).unwrap().len() <= 256 * 1024);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_and_its_files_are_for_this_user_alone() {
    let (world, desk) = (clockless(), Desk::new("modes"));
    dies_holding(&world, "k").await;
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&desk.directory()), 0o700);
    assert_eq!(mode(&desk.page()), 0o600);
}

/// Writes a page with a correct checksum.
fn rewrite(page: &Path, text: &str) {
    let text = text.trim_end();
    let (body, _) = text.rsplit_once('\n').unwrap();
    let body = format!("{body}\n");
    let sum = checksum(body.as_bytes());
    let entries = body.lines().count() - 1;
    fs::write(page, format!("{body}{{\"entries\":{entries},\"checksum\":\"{sum:016x}\"}}\n")).unwrap();
}

/// FNV-1a over the bytes and their number, as the format requires.
fn checksum(bytes: &[u8]) -> u64 {
    let length = (bytes.len() as u64).to_le_bytes();
    bytes.iter().chain(&length).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_bad_file_is_ignored_and_a_good_one_is_trusted() {
    type Spoil = fn(&Path, &str);
    let spoils: &[(&str, Spoil, bool)] = &[
        ("honest", |_, _| {}, true),
        ("written anew as it was", rewrite, true),
        ("empty", |page, _| fs::write(page, "").unwrap(), false),
        ("cut", |page, text| fs::write(page, &text[..text.len() - 3]).unwrap(), false),
        (
            "edited",
            |page, text| fs::write(page, text.replace("\"wanted\":true", "\"wanted\":false")).unwrap(),
            false,
        ),
        ("of another boot", |page, text| rewrite(page, &text.replace("manual,", "another,")), false),
        (
            "of another format",
            |page, text| rewrite(page, &text.replace("\"format\":1", "\"format\":2")),
            false,
        ),
        (
            "of another make",
            |page, text| rewrite(page, &text.replace("\"logbook\":\"tenure\"", "\"logbook\":\"x\"")),
            false,
        ),
        ("of another store", |page, text| rewrite(page, &text.replace("memory:", "memory:x")), false),
        (
            "of another key",
            |page, text| rewrite(page, &text.replace("\"key\":\"k\"", "\"key\":\"l\"")),
            false,
        ),
        (
            "seen in the future",
            |page, text| rewrite(page, &text.replace("\"last\":", "\"last\":9000000000")),
            false,
        ),
        (
            "with a field more",
            |page, text| rewrite(page, &text.replace("\"wanted\":true", "\"wanted\":true,\"more\":1")),
            false,
        ),
        (
            "writable by others",
            |page, _| fs::set_permissions(page, fs::Permissions::from_mode(0o622)).unwrap(),
            false,
        ),
        (
            "a symbolic link",
            |page, _| {
                let elsewhere = page.with_file_name("elsewhere");
                fs::rename(page, &elsewhere).unwrap();
                symlink(elsewhere, page).unwrap();
            },
            false,
        ),
        ("with two names", |page, _| fs::hard_link(page, page.with_file_name("second")).unwrap(), false),
        (
            "a fifo",
            |page, _| {
                fs::remove_file(page).unwrap();
                nix::unistd::mkfifo(page, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
            },
            false,
        ),
        ("too long", |page, text| rewrite(page, &pad(text)), false),
    ];
    for (what, spoil, believed) in spoils {
        let (world, desk) = (clockless(), Desk::new("bad"));
        dies_holding(&world, "k").await;
        assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
        world.clock.advance(runs_out_after());
        let page = desk.page();
        let text = fs::read_to_string(&page).unwrap();
        spoil(&page, &text);
        let granted = desk.tries(&world, "k").await;
        assert_eq!(granted, if *believed { Ok(2) } else { Err(ErrorKind::Held) }, "{what}");
        if !believed {
            // The new observation has replaced the bad file.
            assert!(fs::symlink_metadata(&page).unwrap().is_file(), "{what}");
            world.clock.advance(runs_out_after());
            assert_eq!(desk.tries(&world, "k").await, Ok(2), "{what}");
        }
    }
}

fn pad(text: &str) -> String {
    let (head, rest) = text.split_once('\n').unwrap();
    let entry = rest.lines().next().unwrap();
    let others = (0..2_000).map(|number| entry.replace("\"key\":\"k\"", &format!("\"key\":\"l{number}\"")));
    let others: Vec<_> = others.collect();
    format!("{head}\n{}\n{rest}", others.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_user_is_not_trusted() {
    if !rustix::process::geteuid().is_root() {
        return tenure_testkit::skipped("only root can give files away");
    }
    let (world, desk) = (clockless(), Desk::new("foreign"));
    dies_holding(&world, "k").await;
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    world.clock.advance(runs_out_after());
    std::os::unix::fs::chown(desk.page(), Some(12_345), Some(12_345)).unwrap();
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
}

/// A clock that names its domain.
#[derive(Clone, Debug)]
struct Elsewhere(ManualClock, Option<&'static str>);

impl Clock for Elsewhere {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wall(&self) -> WallTime {
        self.0.wall()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        self.0.sleep_until(at)
    }

    fn domain(&self) -> Option<Domain> {
        Domain::parse(self.1?)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observation_on_another_clock_does_not_count_and_without_a_domain_nothing_is_remembered() {
    let (world, desk) = (clockless(), Desk::new("domains"));
    dies_holding(&world, "k").await;
    let tries = async |domain: Option<&'static str>| {
        let clock = Arc::new(Elsewhere(world.clock.clone(), domain));
        let process = connect(&world, "cron", desk.logbook(), clock).await;
        let tried = process.lease("k").unwrap().ttl(TTL).try_acquire().await;
        assert_eq!(process.logbook_error(), None);
        tried.map(|lease| lease.token().get()).map_err(|error| error.kind())
    };
    assert_eq!(tries(None).await, Err(ErrorKind::Held));
    assert!(!desk.directory().exists());
    assert_eq!(tries(Some("boot-1,time:[1]+0.0")).await, Err(ErrorKind::Held));
    world.clock.advance(2 * TTL);
    assert_eq!(tries(None).await, Err(ErrorKind::Held));
    assert_eq!(tries(Some("boot-2,time:[1]+0.0")).await, Err(ErrorKind::Held));
    assert_eq!(tries(Some("boot-1,time:[2]+0.0")).await, Err(ErrorKind::Held));
    assert_eq!(tries(Some("boot-1,time:[1]+10000.0")).await, Err(ErrorKind::Held));
    assert_eq!(tries(Some("boot-1,time:[1]+0.0")).await, Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_few_files_of_other_boots_stay() {
    let (world, desk) = (clockless(), Desk::new("boots"));
    dies_holding(&world, "k").await;
    for boot in 0..30 {
        let domain: &'static str = Box::leak(format!("boot-{boot},none").into_boxed_str());
        let clock = Arc::new(Elsewhere(world.clock.clone(), Some(domain)));
        let process = connect(&world, "cron", desk.logbook(), clock).await;
        let error = process.lease("k").unwrap().ttl(TTL).try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held);
    }
    let files = fs::read_dir(desk.directory()).unwrap().count();
    assert!(files <= 8 + 2, "{files}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_concurrent_writers_lose_nothing() {
    let (world, desk) = (clockless(), Desk::new("writers"));
    let keys: Vec<_> = (0..24).map(|number| format!("k{number}")).collect();
    for key in &keys {
        dies_holding(&world, key).await;
    }
    let tries = keys.iter().map(|key| desk.tries(&world, key));
    let denied = futures_util::future::join_all(tries).await;
    assert!(denied.iter().all(|denied| *denied == Err(ErrorKind::Held)), "{denied:?}");
    world.clock.advance(runs_out_after());
    let tries = keys.iter().map(|key| desk.tries(&world, key));
    let granted = futures_util::future::join_all(tries).await;
    assert!(granted.iter().all(|granted| *granted == Ok(2)), "{granted:?}");
}

/// More contenders than the pool has threads give up at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn contenders_that_give_up_at_once_all_leave_their_observations_behind() {
    for _ in 0..10 {
        let (world, desk) = (clockless(), Desk::new("crowd"));
        let names: Vec<_> = (0..16).map(|number| format!("k{number}")).collect();
        for name in &names {
            dies_holding(&world, name).await;
        }
        let process = desk.process(&world, "crowd").await;
        let tries = names.iter().map(|name| process.lease(name).unwrap().ttl(TTL).try_acquire());
        let denied =
            futures_util::future::join_all(tries).await.iter().filter(|tried| tried.is_err()).count();
        process.shutdown().await.unwrap();
        let page = fs::read_to_string(desk.page()).unwrap();
        let logged = names.iter().filter(|name| page.contains(&format!("\"key\":\"{name}\""))).count();
        assert_eq!((denied, logged), (16, 16));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_logbook_fails_no_call_and_reports_why() {
    let (world, desk) = (clockless(), Desk::new("unusable"));
    dies_holding(&world, "k").await;
    let tries = async |logbook: &Path| {
        let process =
            connect(&world, "cron", Logbook::in_directory(logbook), Arc::new(world.clock.clone())).await;
        assert_eq!(process.logbook_error(), None, "nothing was needed yet");
        let error = process.lease("k").unwrap().ttl(TTL).try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held);
        assert!(process.observe("k").await.unwrap().standing.is_held());
        process.logbook_error().unwrap_or_default()
    };
    let real = desk.0.join("real");
    fs::create_dir(&real).unwrap();
    let link = desk.0.join("link");
    symlink(&real, &link).unwrap();
    let said = tries(&link).await;
    assert_eq!(
        said,
        format!(
            "sightings are not stored in {}: it is a symbolic link, and Tenure does not follow links. Remove it",
            link.display()
        )
    );
    let file = desk.0.join("file");
    fs::write(&file, "").unwrap();
    let said = tries(&file).await;
    assert!(said.contains("Not a directory") && said.ends_with("Name a directory"), "{said}");
    let open = desk.0.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let said = tries(&open).await;
    let step = format!("other users may write to it. Remove that permission (chmod 700 {})", open.display());
    assert!(said.ends_with(&step), "{said}");
    let said = tries(Path::new("/proc/tenure-logbook")).await;
    assert!(said.contains("it is on proc, which is not known to be local"), "{said}");
    assert_eq!(fs::read_dir(&real).unwrap().count() + fs::read_dir(&open).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_another_process_keeps_costs_a_moment_and_nothing_else() {
    let (world, desk) = (clockless(), Desk::new("locked"));
    dies_holding(&world, "k").await;
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    let before = fs::read_to_string(desk.page()).unwrap();
    let lock = fs::File::open(desk.directory().join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    world.clock.advance(SECOND);
    assert_eq!(desk.tries(&world, "k").await, Err(ErrorKind::Held));
    assert_eq!(fs::read_to_string(desk.page()).unwrap(), before);
    drop(lock);
    world.clock.advance(runs_out_after() - SECOND);
    assert_eq!(desk.tries(&world, "k").await, Ok(2), "what was seen before stays");
}
