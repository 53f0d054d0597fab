//! The gate whose mark survives a restart.

mod support;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use tenure::fence::{DurableGate, FenceError, FencingToken, Gate, Seal};
use tenure::store::File;
use tenure::{Coordinator, ErrorKind, Reason, Token};
use tenure_fence::suite::{self, Plan, Resource, Shown, Writer};
use tenure_testkit::{key, quota};
use tokio::sync::{RwLock, Semaphore};

use support::{eventually, spawn};

fn token(number: u64) -> FencingToken {
    FencingToken::new(key("billing"), Token::new(number).unwrap()).unwrap()
}

/// What a fence does with a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It seals, and its answer is lost.
    LostAnswer,
    /// It does not seal, and its answer is lost.
    LostCall,
    /// It cannot be reached.
    Unreachable,
}

/// A durable mark, shared by all runs of a server. It counts its calls.
#[derive(Clone, Default)]
struct Disk {
    mark: Arc<Mutex<Option<FencingToken>>>,
    calls: Arc<AtomicUsize>,
    fault: Arc<Mutex<Option<Fault>>>,
    /// A seal waits for one of its permits, if there is one.
    held_back: Option<Arc<Semaphore>>,
}

impl Disk {
    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn fails(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap() = fault;
    }

    fn mark(&self) -> Option<FencingToken> {
        self.mark.lock().unwrap().clone()
    }

    /// A server that has just started.
    fn gate(&self) -> DurableGate<Self> {
        Gate::new("the ledger", key("billing")).durable(self.clone())
    }
}

impl Seal for Disk {
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if let Some(held_back) = &self.held_back {
            held_back.acquire().await.unwrap().forget();
        }
        let fault = *self.fault.lock().unwrap();
        if fault == Some(Fault::Unreachable) {
            return Err(FenceError::refused("the disk", Reason::Unreachable, "no route"));
        }
        let mut mark = self.mark.lock().unwrap();
        if fault != Some(Fault::LostCall) {
            token.check("the disk", mark.as_ref())?;
            *mark = Some(token.clone());
        }
        if fault.is_some() { Err(FenceError::unknown("the disk", "connection reset")) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_new_token_costs_one_seal_and_every_further_decision_none() {
    let disk = Disk::default();
    let gate = disk.gate();
    for _ in 0..5 {
        gate.admit(&token(7)).await.unwrap();
        drop(gate.enter(&token(7)).await.unwrap());
    }
    assert_eq!((disk.calls(), disk.mark()), (1, Some(token(7))));
    gate.admit(&token(9)).await.unwrap();
    assert!(gate.admit(&token(7)).await.unwrap_err().is_stale());
    assert!(gate.enter(&"payroll=900".parse().unwrap()).await.is_err());
    assert_eq!((disk.calls(), gate.highest(), gate.refused()), (2, Token::new(9), 2));
}

#[tokio::test]
async fn a_restart_does_not_lower_the_mark() {
    let disk = Disk::default();
    disk.gate().admit(&token(9)).await.unwrap();

    let restarted = disk.gate();
    assert_eq!(restarted.highest(), None);
    let error = restarted.enter(&token(7)).await.unwrap_err();
    assert!(error.is_stale() && error.to_string().contains("token 9 has been there"), "{error}");
    assert_eq!((restarted.highest(), restarted.refused()), (Token::new(9), 1));
    assert_eq!(disk.calls(), 2);

    // The fence has named 9: another stale token costs no call.
    assert!(restarted.admit(&token(8)).await.unwrap_err().is_stale());
    assert_eq!((disk.calls(), restarted.refused()), (2, 2));
    // 9 itself was not admitted by this run yet, so it is sealed.
    restarted.admit(&token(9)).await.unwrap();
    restarted.admit(&token(9)).await.unwrap();
    assert_eq!(disk.calls(), 3);
}

#[tokio::test]
async fn a_seal_without_a_clear_answer_admits_nothing_and_is_made_again() {
    for fault in [Fault::LostAnswer, Fault::LostCall] {
        let disk = Disk::default();
        let gate = disk.gate();
        gate.admit(&token(7)).await.unwrap();
        disk.fails(Some(fault));
        for _ in 0..2 {
            let error = gate.enter(&token(9)).await.unwrap_err();
            assert!(matches!(error, FenceError::Unknown { .. }), "{error}");
        }
        assert_eq!((gate.highest(), gate.refused()), (Token::new(7), 0), "{fault:?}");
        gate.admit(&token(7)).await.unwrap();
        disk.fails(None);
        gate.admit(&token(9)).await.unwrap();
        assert_eq!((disk.calls(), disk.mark()), (4, Some(token(9))));
        assert!(gate.admit(&token(7)).await.unwrap_err().is_stale());
    }
}

#[tokio::test]
async fn a_fence_that_cannot_be_reached_stops_new_holders_and_not_the_present_one() {
    let disk = Disk::default();
    let gate = disk.gate();
    gate.admit(&token(7)).await.unwrap();
    disk.fails(Some(Fault::Unreachable));
    assert_eq!(tenure::Error::from(gate.admit(&token(9)).await.unwrap_err()).kind(), ErrorKind::Unavailable);
    gate.admit(&token(7)).await.unwrap();
    assert_eq!((disk.calls(), gate.refused()), (2, 0));
}

#[tokio::test]
async fn concurrent_admissions_of_a_new_token_seal_once() {
    let held_back = Arc::new(Semaphore::new(0));
    let disk = Disk { held_back: Some(Arc::clone(&held_back)), ..Disk::default() };
    let gate = disk.gate();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let gate = gate.clone();
            spawn(async move { gate.enter(&token(9)).await.map(drop) })
        })
        .collect();
    eventually("one of them seals", || disk.calls() == 1).await;
    assert_eq!(gate.highest(), None, "nothing is admitted before the seal is durable");
    held_back.add_permits(100);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!((disk.calls(), held_back.available_permits()), (1, 99));
}

#[tokio::test]
async fn a_cancelled_seal_admits_nothing_and_blocks_no_other_call() {
    let held_back = Arc::new(Semaphore::new(0));
    let disk = Disk { held_back: Some(Arc::clone(&held_back)), ..Disk::default() };
    let gate = disk.gate();
    assert!(gate.enter(&token(9)).now_or_never().is_none(), "it waits for the fence, and is dropped");
    assert_eq!((disk.calls(), gate.highest()), (1, None));
    held_back.add_permits(2);
    gate.admit(&token(8)).await.unwrap();
    gate.admit(&token(9)).await.unwrap();
    assert_eq!(disk.calls(), 3);
}

#[tokio::test]
async fn a_smaller_token_that_waited_for_the_seal_of_a_greater_one_is_refused_without_a_call() {
    let held_back = Arc::new(Semaphore::new(0));
    let disk = Disk { held_back: Some(Arc::clone(&held_back)), ..Disk::default() };
    let gate = disk.gate();
    let newer = spawn({
        let gate = gate.clone();
        async move { gate.admit(&token(9)).await }
    });
    eventually("9 seals", || disk.calls() == 1).await;
    let older = spawn({
        let gate = gate.clone();
        async move { gate.admit(&token(8)).await }
    });
    tokio::task::yield_now().await;
    held_back.add_permits(2);
    newer.await.unwrap().unwrap();
    assert!(older.await.unwrap().unwrap_err().is_stale());
    assert_eq!(disk.calls(), 1);
}

#[tokio::test]
async fn a_write_that_has_entered_ends_before_one_of_a_newer_token_that_was_sealed_meanwhile() {
    let disk = Disk::default();
    let gate = disk.gate();
    let pass = gate.enter(&token(7)).await.unwrap();
    let newer = spawn({
        let gate = gate.clone();
        async move { gate.enter(&token(9)).await.map(drop) }
    });
    eventually("9 is sealed", || gate.highest() == Token::new(9)).await;
    assert_eq!(disk.mark(), Some(token(9)));
    assert!(gate.enter(&token(7)).await.unwrap_err().is_stale());
    assert!(!newer.is_finished());
    drop(pass);
    newer.await.unwrap().unwrap();
}

/// A server with a log, which restarts when a writer of the suite crashes. Its mark is durable; its gate is not.
struct Server {
    disk: Disk,
    /// A restart waits for the running writes, as the end of a process ends them.
    run: Arc<RwLock<DurableGate<Disk>>>,
    shown: Arc<Mutex<Vec<Shown>>>,
}

struct Client {
    run: Arc<RwLock<DurableGate<Disk>>>,
    disk: Disk,
    shown: Arc<Mutex<Vec<Shown>>>,
}

impl Resource for Server {
    type Writer = Client;

    async fn writer(&self) -> Client {
        *self.run.write().await = Gate::new("the log", key("suite")).durable(self.disk.clone());
        let (run, disk, shown) = (Arc::clone(&self.run), self.disk.clone(), Arc::clone(&self.shown));
        Client { run, disk, shown }
    }

    async fn shown(&self) -> Vec<Shown> {
        self.shown.lock().unwrap().clone()
    }
}

impl Writer for Client {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let faults =
            [None, None, None, Some(Fault::LostAnswer), Some(Fault::LostCall), Some(Fault::Unreachable)];
        self.disk.fails(faults[(number as usize).wrapping_mul(7) % faults.len()]);
        let run = self.run.read().await;
        let pass = run.enter(token).await?;
        for _ in 0..number % 4 {
            tokio::task::yield_now().await;
        }
        self.shown.lock().unwrap().push(Shown { token: Some(token.token()), number });
        drop(pass);
        Ok(())
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        self.disk.fails(None);
        Some(self.run.read().await.seal(token).await)
    }
}

#[tokio::test]
async fn writes_through_a_server_that_restarts_satisfy_the_suite_of_fences() {
    let (mut admitted, mut refused, mut crashes) = (0, 0, 0);
    for seed in 0..quota(40, 1_000) {
        let disk = Disk::default();
        let run = Arc::new(RwLock::new(Gate::new("the log", key("suite")).durable(disk.clone())));
        let server = Server { disk, run, shown: Arc::default() };
        let counts = suite::run(&server, Plan::new(seed).keeps_all()).await.unwrap();
        admitted += counts.admitted;
        refused += counts.refused;
        crashes += counts.crashes;
    }
    println!("{admitted} admitted, {refused} refused, {crashes} restarts");
    assert!(admitted > 1_000 && refused > 500 && crashes > 100, "{admitted} {refused} {crashes}");
}

/// A directory of a file store; deleted when dropped.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_mark_in_a_file_store_outlives_the_server() {
    let name = format!("tenure-gate-{}", std::process::id());
    let directory = Directory(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    let started = async || {
        let coordinator = Coordinator::connect(File::open(&directory.0).unwrap()).await.unwrap();
        let mark = coordinator.fenced("ledger/mark").unwrap();
        (Gate::new("the ledger", key("billing")).durable(mark), coordinator)
    };
    let (gate, coordinator) = started().await;
    gate.admit(&token(7)).await.unwrap();
    gate.admit(&token(9)).await.unwrap();
    drop(gate);
    coordinator.shutdown().await.unwrap();

    let (gate, _coordinator) = started().await;
    assert!(gate.admit(&token(7)).await.unwrap_err().is_stale());
    gate.admit(&token(9)).await.unwrap();
}
