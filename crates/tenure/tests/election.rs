//! Elections: campaigns, terms, leaders, and the loop that leads again and again.

mod file_support;
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use tenure::store::File;
use tenure::store::memory::{GetFault, PutFault};
use tenure::{Coordinator, Election, Error, ErrorKind, Holder, Leader, Leaders, LeaseState, Lost, Ran, Term};
use tenure_store::{Key, Reason};
use tokio::sync::oneshot;

use file_support::Scratch;
use support::{World, eventually, poll_times, spawn};

const TTL: Duration = Duration::from_secs(16);

/// Contenders without hints read once in this time, at least.
const POLL_PERIOD: Duration = Duration::from_secs(6);

const MOMENT: Duration = Duration::from_millis(100);

fn election(process: &Coordinator) -> Election {
    process.election("k").unwrap().ttl(TTL)
}

fn key() -> Key {
    Key::parse("k").unwrap()
}

/// The first term of a campaign, with the campaign dropped.
async fn lead(election: &Election) -> Term {
    election.campaign().unwrap().next().await.unwrap()
}

/// Asserts that a contender is granted without waiting.
async fn assert_free(process: &Coordinator, why: &str) {
    drop(process.lease("k").unwrap().ttl(TTL).try_acquire().await.expect(why));
}

/// The next leader that an observer reports. A read after a hint comes a moment later.
async fn next_leader(world: &World, leaders: &mut Leaders) -> Result<Option<Leader>, Error> {
    tokio::join!(leaders.next(), world.pass(MOMENT)).0
}

/// The log of who led with which token.
type Log = Arc<Mutex<Vec<(&'static str, u64)>>>;

/// Leads `terms` times, and resigns each time after a moment.
async fn lead_and_resign(world: World, election: Election, name: &'static str, terms: usize, log: Log) {
    let mut campaign = election.campaign().unwrap();
    for _ in 0..terms {
        let term = campaign.next().await.unwrap();
        log.lock().unwrap().push((name, term.token().get()));
        world.clock_sleep(MOMENT).await;
        term.resign().await.unwrap();
        assert!(!election.is_leader());
    }
}

impl World {
    async fn clock_sleep(&self, span: Duration) {
        use tenure::clock::Clock;
        self.clock.sleep_until(self.clock.now() + span).await;
    }
}

/// Asserts that they lead in turn, under growing tokens.
async fn assert_they_alternate(world: &World, a: Election, b: Election) {
    let log = Log::default();
    let first = spawn(lead_and_resign(world.clone(), a, "a", 4, Arc::clone(&log)));
    eventually("a leads", || !log.lock().unwrap().is_empty()).await;
    let second = spawn(lead_and_resign(world.clone(), b, "b", 4, Arc::clone(&log)));
    world.settle().await;
    for _ in 0..40 {
        world.pass(TTL / 4).await;
    }
    first.await.unwrap();
    second.await.unwrap();
    let log = log.lock().unwrap();
    let names: Vec<_> = log.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["a", "b", "a", "b", "a", "b", "a", "b"], "{log:?}");
    assert!(log.windows(2).all(|pair| pair[0].1 < pair[1].1), "{log:?}");
}

#[tokio::test]
async fn a_node_that_has_just_released_lets_the_other_try_first() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    assert_they_alternate(&world, election(&a), election(&b)).await;
}

#[tokio::test]
async fn it_does_so_also_on_a_store_without_hints_and_for_a_twin_of_the_same_name() {
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.watch = false));
    let (a, b) = (world.process("twin").await, world.process("twin").await);
    assert_they_alternate(&world, election(&a), election(&b)).await;
}

#[tokio::test]
async fn it_does_so_also_on_the_file_store() {
    let (world, scratch) = (World::new(), Scratch::new("election"));
    let connect = async || {
        let store = File::builder().clock(Arc::new(world.clock.clone())).open(&scratch.0).unwrap();
        Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(store).await.unwrap()
    };
    let (a, b) = (connect().await, connect().await);
    assert_they_alternate(&world, election(&a), election(&b)).await;
}

#[tokio::test]
async fn a_shutdown_ends_a_campaign_at_once_while_the_node_lets_the_others_try_or_is_unhealthy() {
    let world = World::new();
    for is_healthy in [true, false] {
        let a = world.process("a").await;
        let healthy = Arc::new(AtomicBool::new(true));
        let checked = Arc::clone(&healthy);
        let election =
            election(&a).health_check(Duration::from_secs(1), move || checked.load(Ordering::SeqCst));
        let mut campaign = election.campaign().unwrap();
        campaign.next().await.unwrap().resign().await.unwrap();
        healthy.store(is_healthy, Ordering::SeqCst);
        let paused = spawn(async move { (campaign.next().await, campaign.next().await) });
        world.settle().await;
        world.pass(if is_healthy { MOMENT } else { TTL }).await;
        assert!(!paused.is_finished());
        a.shutdown().await.unwrap();
        // The time of this world stands still.
        eventually("the campaign ends", || paused.is_finished()).await;
        let (ended, next) = paused.await.unwrap();
        for error in [ended.unwrap_err(), next.unwrap_err()] {
            assert!(error.to_string().contains("is shut down"), "healthy: {is_healthy}, {error}");
        }
    }
}

#[tokio::test]
async fn a_node_alone_leads_again_one_poll_period_after_it_resigned() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    let mut campaign = election.campaign().unwrap();
    let first = campaign.next().await.unwrap();
    first.resign().await.unwrap();
    assert_eq!(first.lost().await, Lost::Released);
    let again = spawn(async move { campaign.next().await.unwrap() });
    world.pass(POLL_PERIOD).await;
    assert!(!election.is_leader() && !again.is_finished(), "the others try first");
    world.pass(POLL_PERIOD / 5).await;
    let second = again.await.unwrap();
    assert!(election.is_leader() && second.token() > first.token());
    second.check().unwrap();
}

#[tokio::test]
async fn after_a_loss_it_campaigns_at_once_and_after_a_revocation_the_revoker_leads() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    let mut campaign = election.campaign().unwrap();
    let term = campaign.next().await.unwrap();
    world.memory.delete(&key());
    let deleted = async {
        world.pass(TTL / 2).await;
        term.lost().await
    };
    let (again, lost) = tokio::join!(campaign.next(), deleted);
    assert_eq!(lost, Lost::Deleted);
    let again = again.unwrap();
    assert!(again.token() > term.token() && election.is_leader());
    drop(term);
    assert!(election.is_leader(), "an old term does not end the new one");

    let b = world.process("b").await;
    let revoker = spawn(b.lease("k").unwrap().ttl(TTL).revoke("moving").acquire());
    let waiting = spawn(async move { campaign.next().await.unwrap() });
    world.pass(TTL).await;
    assert!(matches!(again.lost().await, Lost::Revoked { .. }));
    let lease = revoker.await.unwrap().unwrap();
    assert!(!election.is_leader());
    lease.release().await.unwrap();
    world.pass(TTL).await;
    assert!(waiting.await.unwrap().token() > lease.token());
}

#[tokio::test]
async fn is_leader_follows_the_clock_and_not_the_keeper() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    assert!(!election.is_leader());
    let term = lead(&election).await;
    assert!(election.is_leader() && election.clone().is_leader());
    world.memory.faults().every_put(Some(PutFault::Hang));
    world.clock.advance(TTL);
    assert!(!election.is_leader(), "at the deadline, before any timer has fired");
    let mut states = Box::pin(term.states());
    assert_eq!(
        states.next().await,
        Some(LeaseState::Lost(Lost::Expired)),
        "the answer has latched the belief"
    );
    assert!(term.check().is_err());
}

#[tokio::test]
async fn a_dropped_term_resigns_and_a_clone_of_it_keeps_it() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    let term = lead(&election).await;
    let clone = term.clone();
    drop(term);
    assert!(election.is_leader());
    drop(clone);
    assert!(!election.is_leader());
    world.settle().await;
    assert!(a.observe("k").await.unwrap().standing.is_free());
}

#[tokio::test]
async fn work_is_skipped_on_followers_and_dropped_when_the_term_is_over() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    let never = async { panic!("a follower works") };
    assert_eq!(election.run_if_leader(never).await.unwrap(), Ran::<()>::Skipped);
    let term = lead(&election).await;
    assert_eq!(election.run_if_leader(async { 5 }).await.unwrap().done(), Some(5));
    let work = election.run_if_leader(std::future::pending::<()>());
    let (outcome, resigned) = tokio::join!(work, term.resign());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Lost);
    resigned.unwrap();
    assert!(!election.resign().await.unwrap(), "it does not lead");
}

#[tokio::test]
async fn a_resignation_by_the_election_ends_the_term_for_the_next_node() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let election = election(&a);
    let term = lead(&election).await;
    assert!(election.resign().await.unwrap());
    assert_eq!(term.lost().await, Lost::Released);
    assert_free(&b, "it was released").await;
}

// ── observers ─────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn an_observer_sees_the_present_leader_first_and_then_every_change() {
    let world = World::new();
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let first = election(&a)
        .holder(Holder::new("a").unwrap().at("http://a").unwrap().label("zone", "1").unwrap())
        .value("v1");
    let mut leaders = election(&c).observe().unwrap();
    assert_eq!(leaders.age(), None);
    assert_eq!(next_leader(&world, &mut leaders).await.unwrap(), None, "no leader yet");
    let term = lead(&first).await;
    let seen = next_leader(&world, &mut leaders).await.unwrap().unwrap();
    assert_eq!((seen.name(), seen.address(), &*seen.value), ("a", Some("http://a"), "v1"));
    assert_eq!((seen.labels()["zone"].as_str(), seen.token), ("1", term.token()));
    let late = election(&c).observe().unwrap().next().await.unwrap();
    assert_eq!(late, Some(seen), "another observer begins with the same leader");

    term.resign().await.unwrap();
    assert_eq!(next_leader(&world, &mut leaders).await.unwrap(), None);
    let next = lead(&election(&b)).await;
    let seen = next_leader(&world, &mut leaders).await.unwrap().unwrap();
    assert_eq!((seen.name(), seen.token, seen.address()), ("b", next.token(), None));
}

#[tokio::test]
async fn two_leaders_with_the_same_name_are_two_leaders() {
    let world = World::new();
    let (a, b, c) = (world.process("twin").await, world.process("twin").await, world.process("c").await);
    let (one, other) = (election(&a), election(&b));
    let mut leaders = election(&c).observe().unwrap();
    next_leader(&world, &mut leaders).await.unwrap();
    let term = lead(&one).await;
    let first = next_leader(&world, &mut leaders).await.unwrap().unwrap();
    assert!(one.is_leader() && !other.is_leader(), "a record with its own name makes no leader");
    let waiting = poll_times(&world, lead(&other), 4).await;
    assert!(waiting.is_none(), "a twin waits like every other contender");
    term.resign().await.unwrap();
    next_leader(&world, &mut leaders).await.unwrap();
    drop(term);
    world.settle().await;
    let _term = lead(&other).await;
    let second = next_leader(&world, &mut leaders).await.unwrap().unwrap();
    assert!(second.name() == first.name() && second.token > first.token);
}

#[tokio::test]
async fn an_observer_never_goes_back_to_an_older_leader_and_reports_what_is_wrong_once() {
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.watch = false));
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let first = lead(&election(&a)).await;
    let backup = world.memory.snapshot();
    first.resign().await.unwrap();
    let _second = lead(&election(&b)).await;
    let mut leaders = election(&c).observe().unwrap();
    assert_eq!(leaders.next().await.unwrap().unwrap().name(), "b");
    world.memory.restore(&backup);
    let (wrong, ()) = tokio::join!(leaders.next(), world.pass(TTL));
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Corrupt);
    let quiet = poll_times(&world, leaders.next(), 3).await;
    assert!(quiet.is_none(), "the error is reported once: {quiet:?}");
}

#[tokio::test]
async fn a_leader_that_stops_renewing_is_no_leader_once_its_record_has_run_out() {
    let world = World::new();
    let (a, c) = (world.process("a").await, world.process("c").await);
    let _term = lead(&election(&a)).await;
    let mut leaders = election(&c).observe().unwrap();
    assert!(leaders.next().await.unwrap().is_some());
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let (none, ()) = tokio::join!(leaders.next(), world.pass(2 * TTL));
    assert_eq!(none.unwrap(), None);
    assert!(leaders.age().unwrap() <= POLL_PERIOD, "{:?}", leaders.age());
}

#[tokio::test]
async fn the_age_of_what_an_observer_knows_grows_while_the_store_cannot_be_read() {
    let world = World::new();
    let (a, c) = (world.process("a").await, world.process("c").await);
    let _term = lead(&election(&a)).await;
    let mut leaders = election(&c).observe().unwrap();
    let leader = leaders.next().await.unwrap();
    world.memory.faults().every_get(Some(GetFault::Fail));
    let (error, ()) = tokio::join!(leaders.next(), world.pass(TTL));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(leaders.age().unwrap() > TTL / 2, "{:?}", leaders.age());
    world.memory.faults().clear();
    let (known, ()) = tokio::join!(leaders.next(), world.pass(TTL));
    assert_eq!(known.unwrap(), leader, "it can be read again, and is the same");
}

// ── the loop ──────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn the_loop_releases_on_the_shutdown_signal_without_waiting_for_the_ttl() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let election = election(&a);
    let (stop, stopped) = oneshot::channel::<()>();
    let works = Arc::new(AtomicUsize::new(0));
    let (looping, counted) = (election.clone(), Arc::clone(&works));
    let running = spawn(async move {
        let shutdown = async { drop(stopped.await) };
        looping
            .run(shutdown, |_term| {
                counted.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<Result<(), Error>>()
            })
            .await
    });
    eventually("it leads", || election.is_leader()).await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(!election.is_leader());
    assert_eq!(works.load(Ordering::SeqCst), 1);
    assert_free(&b, "no time has passed").await;
}

#[tokio::test]
async fn the_loop_stops_also_while_it_waits() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let held = b.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let election = election(&a);
    let shutdown = world.settle();
    election.run(shutdown, async |_term| Err::<(), _>(unexpected())).await.unwrap();
    held.check().unwrap();
}

fn unexpected() -> Error {
    Error::new(ErrorKind::Invalid, "this is not expected")
}

#[tokio::test]
async fn an_error_of_the_work_ends_the_loop_and_the_leadership() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let election = election(&a);
    let kept = Mutex::new(None);
    let failed = election
        .run(std::future::pending(), |term| {
            *kept.lock().unwrap() = Some(term);
            async { Err(unexpected()) }
        })
        .await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!election.is_leader(), "although the work has kept its term");
    assert!(kept.lock().unwrap().as_ref().unwrap().check().is_err());
    assert_free(&b, "it was released").await;
}

#[tokio::test]
async fn a_panic_of_the_work_ends_the_leadership_too() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let election = election(&a);
    let kept: Arc<Mutex<Option<Term>>> = Arc::default();
    let (looping, keep) = (election.clone(), Arc::clone(&kept));
    let panicked = spawn(async move {
        looping
            .run::<_, Error>(std::future::pending(), |term| {
                *keep.lock().unwrap() = Some(term);
                async { panic!("a mistake of the work, for this test") }
            })
            .await
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert!(!election.is_leader(), "although the work has kept its term");
    world.settle().await;
    assert_free(&b, "it was released").await;
    drop(kept);
}

#[tokio::test]
async fn the_loop_works_once_per_term_and_again_after_a_loss() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let (looping, noted) = (election.clone(), Arc::clone(&tokens));
    let running = spawn(async move {
        let done = looping.run::<_, Error>(std::future::pending(), |term| {
            let count = {
                let mut tokens = noted.lock().unwrap();
                tokens.push(term.token());
                tokens.len()
            };
            async move {
                match count {
                    1 => std::future::pending().await,
                    2 => Ok(()),
                    _ => Err(unexpected()),
                }
            }
        });
        done.await
    });
    eventually("it leads", || election.is_leader()).await;
    world.memory.delete(&key());
    world.pass(2 * TTL).await;
    assert!(running.await.unwrap().is_err());
    let tokens = tokens.lock().unwrap();
    assert!(tokens.len() == 3 && tokens.is_sorted(), "{tokens:?}");
}

#[tokio::test]
async fn a_strict_term_ends_at_the_first_failed_renewal() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a).strict();
    let term = lead(&election).await;
    world.memory.faults().next_put(PutFault::Refuse(Reason::Unreachable));
    world.pass(TTL / 2).await;
    assert_eq!(term.lost().await, Lost::RenewalFailed);
    assert!(!election.is_leader());
}

// ── health ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn an_unhealthy_leader_is_at_risk_then_resigns_and_campaigns_again_only_when_it_is_healthy() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let healthy = Arc::new(AtomicBool::new(true));
    let check = Arc::clone(&healthy);
    let limit = Duration::from_secs(8);
    let election = election(&a).health_check(limit, move || check.load(Ordering::SeqCst));
    let mut campaign = election.campaign().unwrap();
    let (term, ()) = tokio::join!(campaign.next(), world.settle());
    let term = term.unwrap();
    let mut states = Box::pin(term.states());
    assert_eq!(states.next().await, Some(LeaseState::Held));

    healthy.store(false, Ordering::SeqCst);
    world.pass(limit / 2).await;
    assert_eq!(states.next().await, Some(LeaseState::AtRisk));
    assert!(election.is_leader(), "it is at risk, and leads");
    world.pass(limit).await;
    assert_eq!(term.lost().await, Lost::Released);
    assert_eq!(states.next().await, Some(LeaseState::Lost(Lost::Released)));
    assert!(!election.is_leader());

    let again = spawn(async move { campaign.next().await.unwrap() });
    world.pass(2 * TTL).await;
    assert!(!again.is_finished(), "an unhealthy node does not campaign");
    assert!(b.observe("k").await.unwrap().standing.is_free());
    healthy.store(true, Ordering::SeqCst);
    world.pass(TTL).await;
    assert!(again.await.unwrap().token() > term.token());
}

#[tokio::test]
async fn a_check_that_hangs_or_panics_is_not_healthy() {
    for hangs in [true, false] {
        let world = World::new();
        let a = world.process("a").await;
        let (ill, release) = (Arc::new(AtomicBool::new(false)), std::sync::mpsc::channel::<()>());
        let (hold, held) = (release.0, Mutex::new(release.1));
        let fails = Arc::clone(&ill);
        let election = election(&a).health_check(TTL / 4, move || {
            if fails.load(Ordering::SeqCst) {
                assert!(hangs, "a mistake of the check, for this test");
                let _ = held.lock().unwrap().recv();
            }
            true
        });
        let mut campaign = election.campaign().unwrap();
        let (term, ()) = tokio::join!(campaign.next(), world.settle());
        let term = term.unwrap();
        world.pass(TTL).await;
        assert!(election.is_leader());
        ill.store(true, Ordering::SeqCst);
        world.pass(TTL).await;
        assert_eq!(term.lost().await, Lost::Released, "hangs: {hangs}");
        drop(hold);
    }
}

// ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn a_store_that_does_not_answer_is_tried_again_and_the_error_is_visible() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    world.memory.faults().every_get(Some(GetFault::Refuse(Reason::Denied)));
    let mut campaign = election.campaign().unwrap();
    let waiting = spawn(async move { campaign.next().await });
    world.pass(2 * TTL).await;
    assert!(!waiting.is_finished() && !election.is_leader());
    assert!(election.last_error().unwrap().contains("denied"), "{:?}", election.last_error());
    let calls = world.memory.calls().gets;
    assert!(calls < 20, "{calls} reads in two ttl");
    world.memory.faults().clear();
    world.pass(TTL).await;
    let _term = waiting.await.unwrap().unwrap();
    assert_eq!(election.last_error(), None);

    // While the machine itself tries again, too.
    world.memory.faults().every_get(Some(GetFault::Fail));
    let b = self::election(&world.process("b").await);
    let mut campaign = b.campaign().unwrap();
    let waiting = spawn(async move { campaign.next().await });
    world.pass(TTL).await;
    assert!(!waiting.is_finished());
    assert!(b.last_error().is_some());
}

#[tokio::test]
async fn an_error_that_only_an_operator_can_resolve_is_returned_and_the_campaign_continues_after_it() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    world.memory.overwrite(&key(), "not a record");
    let mut campaign = election.campaign().unwrap();
    assert_eq!(campaign.next().await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(!election.is_leader());
    let (again, ()) = tokio::join!(campaign.next(), world.pass(TTL + MOMENT));
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Corrupt, "after a pause of one ttl");
    world.memory.delete(&key());
    let (term, ()) = tokio::join!(campaign.next(), world.pass(2 * TTL));
    term.unwrap().check().unwrap();
    assert!(election.ttl(Duration::from_nanos(1)).campaign().is_err(), "such durations are never safe");
}

#[tokio::test]
async fn a_campaign_of_a_coordinator_that_is_shut_down_fails_instead_of_waiting() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a);
    let mut campaign = election.campaign().unwrap();
    let term = campaign.next().await.unwrap();
    a.shutdown().await.unwrap();
    assert!(!election.is_leader());
    assert_eq!(term.lost().await, Lost::Released);
    let (over, ()) = tokio::join!(campaign.next(), world.pass(TTL));
    assert_eq!(over.unwrap_err().kind(), ErrorKind::Unavailable);
    let (over, ()) = tokio::join!(campaign.next(), world.pass(TTL));
    assert!(over.is_err());
}

// ── cancellation and calls ────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn a_future_dropped_at_any_poll_leaves_nothing_held() {
    for polls in 0..6 {
        let world = World::new();
        let (a, b) = (world.process("a").await, world.process("b").await);
        let election = election(&a);
        let mut campaign = election.campaign().unwrap();
        drop(poll_times(&world, campaign.next(), polls).await);
        assert!(!election.is_leader());
        let work = |_| std::future::pending::<Result<(), Error>>();
        drop(poll_times(&world, election.run(std::future::pending(), work), polls).await);
        assert!(!election.is_leader());
        drop(poll_times(&world, election.observe().unwrap().next(), polls).await);
        world.pass(2 * TTL).await;
        let lease = b.lease("k").unwrap().ttl(TTL).try_acquire().await.expect("nothing is held");

        // Afterwards, the same campaign leads.
        lease.release().await.unwrap();
        let (term, ()) = tokio::join!(campaign.next(), world.pass(TTL));
        drop(poll_times(&world, election.resign(), polls.max(1)).await);
        assert!(!election.is_leader());
        world.settle().await;
        assert_free(&b, "the release continues").await;
        drop(term);
    }
}

/// Five nodes. At first one of them leads for two ttl, then each leader resigns after one.
#[tokio::test]
async fn a_grant_costs_three_writes_at_most_and_a_waiting_contender_five_calls_per_ttl() {
    const NODES: u64 = 5;
    for hints in [true, false] {
        let world = World::built(|builder| builder.declare(|guarantees| guarantees.watch = hints));
        let grants = Arc::new(AtomicU64::new(0));
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let election = election(&world.process(&format!("node-{number}")).await);
            let (counted, looping) = (Arc::clone(&grants), election.clone());
            let campaigning = spawn(async move {
                let mut campaign = looping.campaign().unwrap();
                let mut terms = Vec::new();
                loop {
                    terms.push(campaign.next().await.unwrap());
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
            nodes.push((election, campaigning));
        }
        eventually("the first leads", || grants.load(Ordering::SeqCst) == 1).await;
        world.pass(TTL).await;

        let before = world.memory.calls();
        world.pass(2 * TTL).await;
        let (reads, writes) = world.calls_since(before);
        // The leader renews in every third of a ttl, or a little earlier.
        assert!(writes <= 2 * 4, "hints {hints}: {writes} writes in two ttl");
        let most = (NODES - 1) * 2 * 5;
        assert!(reads <= most, "hints {hints}: {reads} reads of the waiting nodes in two ttl");

        let (before, granted, rounds) = (world.memory.calls(), grants.load(Ordering::SeqCst), 3);
        for _ in 0..rounds {
            let leader = nodes.iter().find(|(node, _)| node.is_leader()).expect("one of them leads");
            assert!(leader.0.resign().await.unwrap());
            world.pass(TTL).await;
        }
        let (reads, writes) = world.calls_since(before);
        let terms = grants.load(Ordering::SeqCst) - granted;
        let renewals = rounds * 4;
        assert!(terms >= rounds, "hints {hints}: {terms} grants");
        assert!(writes <= terms * 3 + renewals, "hints {hints}: {writes} writes for {terms} grants");
        // Each hand-over may cost two reads more: of the vacancy, and of the new leader.
        let most = NODES * rounds * 5 + NODES * terms * 2;
        assert!(
            reads + writes <= most,
            "hints {hints}: {reads} reads and {writes} writes for {terms} grants"
        );
        nodes.iter().for_each(|(_, node)| node.abort());
    }
}
