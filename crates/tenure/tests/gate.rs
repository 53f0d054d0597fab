//! The gate: a fence in the memory of one process.

mod support;

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use proptest::prelude::*;
use tenure::fence::{Fence, FenceError, FencingToken, Gate, Pass, Seal};
use tenure::store::Memory;
use tenure::{Coordinator, ErrorKind, Token};
use tenure_fence::suite::{self, Plan, Resource, Shown, Writer};
use tenure_testkit::{key, quota};

use support::{eventually, spawn};

fn gate() -> Gate {
    Gate::new("the ledger", key("billing"))
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(key("billing"), Token::new(number).unwrap()).unwrap()
}

#[test]
fn an_equal_token_is_the_same_holder_writing_again_and_a_smaller_one_is_refused_and_counted() {
    let gate = gate();
    assert_eq!((gate.highest(), gate.refused()), (None, 0));
    for number in [7, 7, 9, 9] {
        gate.admit(&token(number)).unwrap();
    }
    let error = gate.admit(&token(7)).unwrap_err();
    assert!(error.is_stale());
    assert_eq!(
        error.to_string(),
        "the ledger refused token 7 of lease billing: token 9 has been there. A newer holder writes: stop for good"
    );
    gate.admit(&token(9)).unwrap();
    assert_eq!((gate.highest(), gate.refused()), (Token::new(9), 1));
}

#[test]
fn the_token_of_another_lease_is_refused_also_by_a_gate_that_has_seen_none() {
    let (gate, other) = (gate(), "payroll=900".parse().unwrap());
    let first = gate.admit(&other).unwrap_err();
    gate.admit(&token(7)).unwrap();
    let second = gate.enter(&other).now_or_never().unwrap().unwrap_err();
    assert!(matches!(second, FenceError::OtherLease { .. }));
    for error in [first, second].map(tenure::Error::from) {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let words = error.to_string();
        for part in ["the ledger", "lease billing", "lease payroll", "900", "use that lease"] {
            assert!(words.contains(part), "{words}");
        }
    }
    assert_eq!((gate.highest(), gate.refused()), (Token::new(7), 2));
}

#[test]
fn a_greater_token_enters_after_the_last_pass_of_smaller_ones_and_no_smaller_one_enters_meanwhile() {
    let gate = gate();
    let [first, second] = [7, 7].map(|number| gate.enter(&token(number)).now_or_never().unwrap().unwrap());
    let mut newer = Waiting::new(&gate, 9);
    assert!(newer.poll().is_none());
    assert!(gate.enter(&token(7)).now_or_never().unwrap().unwrap_err().is_stale());
    assert!(gate.admit(&token(7)).unwrap_err().is_stale());
    drop(first);
    assert!(!newer.is_woken(), "a pass of 7 is left");
    drop(second);
    assert!(newer.is_woken());
    let pass = newer.poll().unwrap().unwrap();
    assert_eq!(pass.token(), &token(9));
}

#[test]
fn a_waiting_token_is_refused_when_a_greater_one_waits_too() {
    let gate = gate();
    let pass = gate.enter(&token(7)).now_or_never().unwrap().unwrap();
    let (mut nine, mut eleven) = (Waiting::new(&gate, 9), Waiting::new(&gate, 11));
    assert!(nine.poll().is_none() && eleven.poll().is_none());
    assert!(nine.is_woken(), "it need not wait for the pass");
    assert!(nine.poll().unwrap().unwrap_err().is_stale());
    drop(pass);
    assert!(eleven.poll().unwrap().is_ok());
}

#[test]
fn a_wait_that_is_given_up_leaves_the_mark_raised_and_no_pass() {
    let gate = gate();
    let pass = gate.enter(&token(7)).now_or_never().unwrap().unwrap();
    let mut newer = Waiting::new(&gate, 9);
    assert!(newer.poll().is_none());
    drop(newer);
    assert_eq!(gate.highest(), Token::new(9));
    drop(pass);
    assert!(gate.enter(&token(7)).now_or_never().unwrap().unwrap_err().is_stale());
    assert!(gate.enter(&token(10)).now_or_never().unwrap().is_ok(), "9 has no pass");
}

#[test]
fn a_future_that_is_never_polled_changes_nothing() {
    let gate = gate();
    drop(gate.enter(&token(9)));
    assert_eq!(gate.highest(), None);
}

#[test]
fn a_pass_ends_when_its_writer_panics() {
    let gate = gate();
    let writer = async {
        let _pass = gate.enter(&token(7)).await.unwrap();
        panic!("the write fails");
    };
    assert!(AssertUnwindSafe(writer).catch_unwind().now_or_never().unwrap().is_err());
    assert!(gate.enter(&token(9)).now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn a_holder_in_the_same_process_writes_through_its_lease() {
    let coordinator = Coordinator::connect(Memory::new()).await.unwrap();
    let lease = coordinator.lease("billing").unwrap().acquire().await.unwrap();
    let (gate, written) = (gate(), AtomicUsize::new(0));
    let fenced = lease.fenced(&gate);
    fenced.seal().await.unwrap();
    let write = || async {
        written.fetch_add(1, Ordering::SeqCst);
    };
    fenced.write(Box::pin(write())).await.unwrap();
    gate.admit(&token(lease.token().get() + 1)).unwrap();
    assert_eq!(fenced.write(Box::pin(write())).await.unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(fenced.seal().await.unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(written.load(Ordering::SeqCst), 1, "a refused write is never polled");
}

/// A call of `enter` that the test polls by hand.
struct Waiting {
    token: u64,
    enter: Pin<Box<dyn Future<Output = Result<Pass, FenceError>>>>,
    woken: Arc<Flag>,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Waiting {
    fn new(gate: &Gate, number: u64) -> Self {
        let (gate, offered) = (gate.clone(), token(number));
        let enter = Box::pin(async move { gate.enter(&offered).await });
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        Self { token: number, enter, woken }
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }

    fn poll(&mut self) -> Option<Result<Pass, FenceError>> {
        self.woken.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.enter.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}

/// One step of an interleaving. Indexes are taken modulo the number of candidates.
#[derive(Clone, Debug)]
enum Step {
    Admit(u64),
    Call(u64),
    /// Polls a future that was woken, or was never polled.
    Poll(usize),
    GiveUp(usize),
    EndPass(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (1..12_u64).prop_map(Step::Admit),
        4 => (1..12_u64).prop_map(Step::Call),
        6 => (0..100_usize).prop_map(Step::Poll),
        1 => (0..100_usize).prop_map(Step::GiveUp),
        3 => (0..100_usize).prop_map(Step::EndPass),
    ];
    prop::collection::vec(step, 1..60)
}

/// A gate, and a model of it: the greatest token that was offered, and the passes.
struct Game {
    gate: Gate,
    highest: u64,
    refused: u64,
    waiting: Vec<Waiting>,
    passes: Vec<Pass>,
}

impl Game {
    fn new() -> Self {
        Self { gate: gate(), highest: 0, refused: 0, waiting: Vec::new(), passes: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Admit(number) => {
                let stale = number < self.highest;
                assert_eq!(self.gate.admit(&token(number)).is_err(), stale);
                self.refused += u64::from(stale);
                self.highest = self.highest.max(number);
            }
            Step::Call(number) => self.waiting.push(Waiting::new(&self.gate, number)),
            Step::Poll(index) => {
                let woken: Vec<_> =
                    (0..self.waiting.len()).filter(|index| self.waiting[*index].is_woken()).collect();
                if !woken.is_empty() {
                    self.poll(woken[index % woken.len()]);
                }
            }
            Step::GiveUp(index) if !self.waiting.is_empty() => {
                drop(self.waiting.swap_remove(index % self.waiting.len()));
            }
            Step::EndPass(index) if !self.passes.is_empty() => {
                drop(self.passes.swap_remove(index % self.passes.len()));
            }
            Step::GiveUp(_) | Step::EndPass(_) => {}
        }
    }

    /// Polls one call, and compares its answer with the rule.
    fn poll(&mut self, index: usize) {
        let waiting = &mut self.waiting[index];
        let number = waiting.token;
        let blocked = self.passes.iter().any(|pass| pass.token() != &token(number));
        let answer = waiting.poll();
        if number < self.highest {
            assert!(answer.unwrap().unwrap_err().is_stale());
            self.refused += 1;
            self.waiting.swap_remove(index);
            return;
        }
        self.highest = number;
        match answer {
            None => assert!(blocked, "{number} waits without a reason"),
            Some(answer) => {
                assert!(!blocked, "{number} has entered beside another token");
                self.passes.push(answer.unwrap());
                self.waiting.swap_remove(index);
            }
        }
    }

    /// Polls what is woken until nothing is. Then every call waits for a reason: no wake-up was lost.
    fn settle(&mut self) {
        for _ in 0..1000 {
            match self.waiting.iter().position(Waiting::is_woken) {
                Some(index) => self.poll(index),
                None => break,
            }
        }
        assert!(!self.waiting.iter().any(Waiting::is_woken), "it never settles");
        let last = self.passes.first().map(|pass| pass.token().token().get());
        for waiting in &self.waiting {
            assert!(last.is_some_and(|last| last < waiting.token), "{} has lost its wake-up", waiting.token);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(quota(2_000, 20_000) as u32))]

    #[test]
    fn any_interleaving_of_calls_polls_and_drops_follows_the_rule(steps in steps()) {
        let mut game = Game::new();
        for step in &steps {
            game.step(step);
            prop_assert_eq!(game.gate.highest().map_or(0, Token::get), game.highest);
            prop_assert_eq!(game.gate.refused(), game.refused);
        }
        game.settle();
        // As passes end one by one, every call is answered.
        while let Some(pass) = game.passes.pop() {
            drop(pass);
            game.settle();
        }
        prop_assert!(game.waiting.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_with_growing_tokens_never_write_under_two_tokens_at_once() {
    let (gate, running, log) =
        (gate(), Arc::new(Mutex::new((0_u64, 0_usize))), Arc::new(Mutex::new(Vec::new())));
    let rounds = quota(400, 10_000);
    let writers: Vec<_> = (0..16_u64)
        .map(|writer| {
            let (gate, running, log) = (gate.clone(), Arc::clone(&running), Arc::clone(&log));
            spawn(async move {
                let (mut written, mut refused) = (0_u64, 0_u64);
                for round in 0..rounds {
                    let number = 1 + (round + writer * 7 % 5) / 3;
                    let Ok(pass) = gate.enter(&token(number)).await else {
                        refused += 1;
                        continue;
                    };
                    {
                        let mut running = running.lock().unwrap();
                        assert!(running.1 == 0 || running.0 == number, "{} and {number}", running.0);
                        *running = (number, running.1 + 1);
                    }
                    tokio::task::yield_now().await;
                    log.lock().unwrap().push(number);
                    running.lock().unwrap().1 -= 1;
                    drop(pass);
                    written += 1;
                }
                (written, refused)
            })
        })
        .collect();
    let (mut written, mut refused) = (0, 0);
    for writer in writers {
        let counts = writer.await.unwrap();
        (written, refused) = (written + counts.0, refused + counts.1);
    }
    assert!(log.lock().unwrap().is_sorted(), "a smaller token has written after a greater one");
    assert_eq!(gate.refused(), refused);
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused");
    assert_eq!(gate.highest().map(Token::get), Some(1 + (rounds - 1 + 4) / 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_are_cancelled_at_random_neither_keep_a_pass_nor_lose_a_wake_up() {
    let gate = gate();
    let writers: Vec<_> = (0..12_u64)
        .map(|seed| {
            let gate = gate.clone();
            spawn(async move {
                let mut chance = fastrand_like(seed);
                for round in 0..300_u64 {
                    let offered = token(1 + round / 4);
                    tokio::select! {
                        biased;
                        entered = gate.enter(&offered) => {
                            if let Ok(_pass) = entered {
                                for _ in 0..chance() % 3 {
                                    tokio::task::yield_now().await;
                                }
                            }
                        }
                        () = yields(chance() % 4) => {}
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(gate.enter(&token(1_000)).now_or_never().unwrap().is_ok(), "no pass is left");
}

async fn yields(times: u64) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// A small generator of numbers (xorshift), seeded.
fn fastrand_like(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiting_calls_of_one_token_enter_together() {
    let gate = gate();
    let first = gate.enter(&token(7)).await.unwrap();
    let entered = Arc::new(AtomicUsize::new(0));
    let waiting: Vec<_> = (0..1_000)
        .map(|_| {
            let (gate, entered) = (gate.clone(), Arc::clone(&entered));
            spawn(async move {
                let pass = gate.enter(&token(9)).await.unwrap();
                entered.fetch_add(1, Ordering::SeqCst);
                // All of them have a pass at the same time.
                while entered.load(Ordering::SeqCst) < 1_000 {
                    tokio::task::yield_now().await;
                }
                drop(pass);
            })
        })
        .collect();
    eventually("9 has arrived", || gate.highest() == Token::new(9)).await;
    assert_eq!(entered.load(Ordering::SeqCst), 0);
    drop(first);
    for call in waiting {
        call.await.unwrap();
    }
    assert!(gate.enter(&token(10)).now_or_never().unwrap().is_ok());
}

/// A log in memory that keeps all its writes. Its check and its write are two steps, which only the pass joins.
#[derive(Clone)]
struct Log {
    gate: Gate,
    shown: Arc<Mutex<Vec<Shown>>>,
    /// False: it only admits, and writes later.
    passes: bool,
}

impl Resource for Log {
    type Writer = Self;

    async fn writer(&self) -> Self {
        self.clone()
    }

    async fn shown(&self) -> Vec<Shown> {
        self.shown.lock().unwrap().clone()
    }
}

impl Writer for Log {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let write = async {
            // Others come in between here, unless a pass keeps them out.
            yields(number % 5).await;
            self.shown.lock().unwrap().push(Shown { token: Some(token.token()), number });
        };
        if self.passes {
            return self.gate.write(token, Box::pin(write)).await;
        }
        self.gate.admit(token)?;
        write.await;
        Ok(())
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(self.gate.seal(token).await)
    }
}

fn log(passes: bool) -> Log {
    Log { gate: Gate::new("the log", key("suite")), shown: Arc::default(), passes }
}

#[tokio::test]
async fn writes_under_a_pass_satisfy_the_suite_of_fences() {
    let (mut admitted, mut refused) = (0, 0);
    for seed in 0..quota(40, 1_000) {
        let counts = suite::run(&log(true), Plan::new(seed).keeps_all()).await.unwrap();
        (admitted, refused) = (admitted + counts.admitted, refused + counts.refused);
    }
    println!("{admitted} admitted, {refused} refused");
    assert!(admitted > 1_000 && refused > 1_000, "{admitted} admitted, {refused} refused");
}

#[tokio::test]
async fn a_write_that_is_only_admitted_can_be_late_and_the_suite_finds_it() {
    let mut found = 0;
    for seed in 0..40 {
        found += u32::from(suite::run(&log(false), Plan::new(seed).keeps_all()).await.is_err());
    }
    assert!(found > 0, "this test can see nothing");
}
