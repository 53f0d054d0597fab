//! The machine of fenced writes under a deterministic network that loses, delays and duplicates writes.
//!
//! The version of an entry is a hash of its bytes, as in S3. Every choice follows from the seed. Each mutant replaces one
//! rule, and must be caught.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tenure_core::Token;
use tenure_core::record::Nonce;
use tenure_fence::suite::{Counts, History, Shown};
use tenure_fence::{FenceError, FencingToken};
use tenure_store::{Applied, Conflict, Entry, Expect, Put, Reading, Reason, StoreError, Version};

use super::machine::{Act, Input, NextCall, ValueMachine};
use super::memory::ValueMemory;
use super::rules::{Rules, Standard};
use super::{Header, ValueEnvelope, ValueFlaw};

#[test]
fn no_interleaving_admits_a_smaller_token_or_misreports_a_write() {
    let mut total = Counts::default();
    for seed in 0..3_000 {
        let counts = World::new(seed, Conditions::Kept, || Standard).run();
        let counts = counts.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        total.admitted += counts.admitted;
        total.refused += counts.refused;
        total.unknown += counts.unknown;
        total.crashes += counts.crashes;
    }
    println!("{total}");
    let counts = [total.admitted, total.refused, total.unknown, total.crashes];
    assert!(counts.iter().all(|count| *count > 5_000), "every kind occurs often: {total}");
}

#[test]
fn a_write_without_a_condition_is_caught() {
    assert_caught(Conditions::Ignored, || Standard);
}

#[test]
fn a_seal_that_keeps_the_old_token_is_caught() {
    struct KeepsOldToken;
    impl Rules for KeepsOldToken {
        fn mark(&self, act: &Act, offered: &FencingToken, mark: Option<&FencingToken>) -> FencingToken {
            match (act, mark) {
                (Act::Seal, Some(mark)) => mark.clone(),
                _ => offered.clone(),
            }
        }
    }
    assert_caught(Conditions::Kept, || KeepsOldToken);
}

#[test]
fn a_token_that_is_not_checked_again_after_a_conflict_is_caught() {
    #[derive(Default)]
    struct ChecksOnce(u32);
    impl Rules for ChecksOnce {
        fn admits(
            &mut self,
            offered: &FencingToken,
            resource: &str,
            mark: Option<&FencingToken>,
        ) -> Result<(), FenceError> {
            self.0 += 1;
            // By the handle's memory, and by the entry that it remembers.
            if self.0 <= 2 { offered.check(resource, mark) } else { Ok(()) }
        }
    }
    assert_caught(Conditions::Kept, ChecksOnce::default);
}

#[test]
fn a_nonce_that_is_used_twice_is_caught() {
    struct OneNonce;
    impl Rules for OneNonce {
        fn nonce(&self, _: Nonce) -> Nonce {
            Nonce::from_bits(7)
        }
    }
    assert_caught(Conditions::Kept, || OneNonce);
}

#[track_caller]
fn assert_caught<R: Rules>(conditions: Conditions, rules: fn() -> R) {
    let caught = (0..2_000).find_map(|seed| World::new(seed, conditions, rules).run().err());
    println!("{}", caught.expect("no seed shows the defect"));
}

/// Whether the store keeps the conditions of writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conditions {
    Kept,
    Ignored,
}

/// Writers, the network and the store.
struct World<R> {
    chance: fastrand::Rng,
    conditions: Conditions,
    rules: fn() -> R,
    entry: Option<Bytes>,
    /// Headers and contents of all entries, in the order in which they were applied.
    log: Vec<(Header, Bytes)>,
    writers: Vec<Writer<R>>,
    /// Writes that are delivered later, or never.
    late: Vec<(Bytes, Expect)>,
    history: History,
    results: Vec<CallResult>,
    /// The flaw of a write that no reader would understand.
    flaw: Option<ValueFlaw>,
    next_number: u64,
    crashes: u64,
}

/// One process.
struct Writer<R> {
    memory: ValueMemory,
    call: Option<Running<R>>,
}

/// A call whose next request has not reached the store yet.
struct Running<R> {
    machine: ValueMachine<R>,
    token: FencingToken,
    /// The number that it writes; `None` for a seal.
    number: Option<u64>,
    began: u64,
    next: NextCall,
    steps: u32,
}

/// A finished call.
struct CallResult {
    number: u64,
    is_admitted: bool,
    is_unknown: bool,
}

impl<R: Rules> World<R> {
    fn new(seed: u64, conditions: Conditions, rules: fn() -> R) -> Self {
        Self {
            chance: fastrand::Rng::with_seed(seed),
            conditions,
            rules,
            entry: None,
            log: Vec::new(),
            writers: (0..4).map(|_| Writer { memory: ValueMemory::default(), call: None }).collect(),
            late: Vec::new(),
            history: History::default(),
            results: Vec::new(),
            flaw: None,
            next_number: 0,
            crashes: 0,
        }
    }

    fn run(mut self) -> Result<Counts, String> {
        for step in 0..120 {
            self.act(step)?;
        }
        for writer in 0..self.writers.len() {
            for _ in 0..500 {
                if self.writers[writer].call.is_some() {
                    self.advance(writer, Fault::None)?;
                }
            }
            assert!(self.writers[writer].call.is_none(), "a call without faults ends");
        }
        while !self.late.is_empty() {
            self.deliver_late();
        }
        self.judge()
    }

    fn act(&mut self, step: u64) -> Result<(), String> {
        if !self.late.is_empty() && self.chance.u8(..8) == 0 {
            self.deliver_late();
        }
        let writer = self.chance.usize(..self.writers.len());
        if self.writers[writer].call.is_none() {
            self.begin(writer, step);
            return Ok(());
        }
        if self.chance.u8(..40) == 0 {
            self.crash(writer);
            return Ok(());
        }
        let fault = match self.chance.u8(..24) {
            0 => Fault::LoseRequest,
            1 | 2 => Fault::LoseAnswer,
            3 | 4 => Fault::Late,
            5 => Fault::Twice,
            6 => Fault::ThrottleAfterApplying,
            7 => Fault::Refuse,
            _ => Fault::None,
        };
        self.advance(writer, fault)
    }

    fn begin(&mut self, writer: usize, step: u64) {
        let behind = self.chance.u64(0..=4);
        let token = Token::new((1 + step / 8).saturating_sub(behind).max(1)).unwrap();
        let token = FencingToken::new("lease".parse().unwrap(), token).unwrap();
        let number = (self.chance.u8(..4) > 0).then(|| {
            self.next_number += 1;
            self.next_number
        });
        let act = number.map_or(Act::Seal, |number| Act::Write(number.to_string().into()));
        let memory = &self.writers[writer].memory;
        let machine = ValueMachine::new((self.rules)(), Arc::from("the value"), token.clone(), act);
        let machine = machine.knowing(memory.highest.clone(), memory.latest.clone());
        let began = self.history.begins();
        let mut running = Running { machine, token, number, began, next: NextCall::Read, steps: 0 };
        running.next = running.machine.step(self.nonce(), Input::Start);
        self.writers[writer].call = Some(running);
    }

    /// The process ends. Its request may be on the way.
    fn crash(&mut self, writer: usize) {
        self.crashes += 1;
        self.writers[writer].memory = ValueMemory::default();
        let Some(call) = self.writers[writer].call.take() else { return };
        if let NextCall::Write { value, expect } = &call.next
            && self.chance.bool()
        {
            self.late.push((value.clone(), expect.clone()));
        }
        let lost = Err(FenceError::unknown("the value", "the writer crashed"));
        self.finish(&call, &lost);
    }

    /// Delivers the request of this writer's call, and takes the next step.
    fn advance(&mut self, writer: usize, fault: Fault) -> Result<(), String> {
        let mut call = self.writers[writer].call.take().expect("a call is running");
        call.steps += 1;
        let input = match &call.next {
            NextCall::Done(_) => {
                let NextCall::Done(result) = std::mem::replace(&mut call.next, NextCall::Read) else {
                    unreachable!()
                };
                let answer = result.map(|sighting| self.writers[writer].memory.saw(sighting));
                let mark = self.header().map_or(Token::ZERO, |header| header.mark.token());
                if answer.is_ok() && mark < call.token.token() {
                    return Err(format!("token {} was admitted, and the mark is {mark}", call.token.token()));
                }
                self.finish(&call, &answer);
                return Ok(());
            }
            NextCall::Read if call.steps > 200 => {
                let error = Err(call.machine.gives_up("too many steps"));
                self.finish(&call, &error);
                return Ok(());
            }
            NextCall::Read => Input::Read(self.read(fault)),
            NextCall::Write { value, expect } => {
                let answer = self.write(value.clone(), expect.clone(), fault);
                if !matches!(answer, Ok(Put::Applied(_))) {
                    self.writers[writer].memory.latest = None;
                }
                Input::Written(answer)
            }
        };
        let nonce = self.nonce();
        call.next = call.machine.step(nonce, input);
        self.writers[writer].call = Some(call);
        Ok(())
    }

    fn finish(&mut self, call: &Running<R>, answer: &Result<(), FenceError>) {
        self.history.ends(call.began, call.token.token(), call.number, answer);
        if let Some(number) = call.number {
            let is_unknown = matches!(answer, Err(FenceError::Unknown { .. }));
            self.results.push(CallResult { number, is_admitted: answer.is_ok(), is_unknown });
        }
    }

    fn read(&mut self, fault: Fault) -> Result<Reading, StoreError> {
        if fault == Fault::LoseAnswer {
            return Err(StoreError::unknown("the answer was lost"));
        }
        let entry = self.entry.as_ref().map(|value| Entry::new(value.clone(), version(value)));
        Ok(Reading::new(entry))
    }

    fn write(&mut self, value: Bytes, expect: Expect, fault: Fault) -> Result<Put, StoreError> {
        match fault {
            Fault::None => Ok(self.apply(value, &expect)),
            Fault::LoseRequest => Err(StoreError::unknown("the request was lost")),
            Fault::LoseAnswer => {
                let _lost = self.apply(value, &expect);
                Err(StoreError::unknown("the answer was lost"))
            }
            Fault::Late => {
                self.late.push((value, expect));
                Err(StoreError::unknown("the request is late"))
            }
            Fault::Twice => {
                let _unseen = self.apply(value.clone(), &expect);
                Ok(self.apply(value, &expect))
            }
            Fault::ThrottleAfterApplying => {
                let _lost = self.apply(value, &expect);
                Err(StoreError::throttled(None))
            }
            Fault::Refuse => Err(StoreError::refused(Reason::Unreachable, "not connected")),
        }
    }

    fn deliver_late(&mut self) {
        let (value, expect) = self.late.swap_remove(self.chance.usize(..self.late.len()));
        let _unseen = self.apply(value, &expect);
    }

    fn apply(&mut self, value: Bytes, expect: &Expect) -> Put {
        let is_expected = match (expect, &self.entry) {
            (Expect::Absent, None) => true,
            (Expect::Version(expected), Some(entry)) => *expected == version(entry),
            _ => false,
        };
        if !is_expected && self.conditions == Conditions::Kept {
            return Put::Conflict(Conflict);
        }
        match ValueEnvelope::decode(&value) {
            Ok(ValueEnvelope { header, content }) => self.log.push((header, content)),
            Err(flaw) => self.flaw = Some(flaw),
        }
        let applied = Applied::new(version(&value));
        self.entry = Some(value);
        Put::Applied(applied)
    }

    fn header(&self) -> Option<&Header> {
        self.log.last().map(|(header, _)| header)
    }

    fn nonce(&mut self) -> Nonce {
        Nonce::from_bits(self.chance.u128(..))
    }

    fn judge(self) -> Result<Counts, String> {
        if let Some(flaw) = self.flaw {
            return Err(format!("a write cannot be read: {flaw}"));
        }
        let (mut mark, mut content) = (Token::ZERO, Bytes::new());
        let mut shown = Vec::new();
        for (at, (header, bytes)) in self.log.iter().enumerate() {
            if header.mark.token() < mark {
                return Err(format!("the mark went from {mark} back to {}", header.mark.token()));
            }
            if header.sequence != at as u64 + 1 && self.conditions == Conditions::Kept {
                return Err(format!("write {} has the number {}", at + 1, header.sequence));
            }
            mark = header.mark.token();
            if *bytes != content {
                let number = std::str::from_utf8(bytes).unwrap().parse().unwrap();
                shown.push(Shown { token: header.written, number });
                content = bytes.clone();
            }
        }
        for CallResult { number, is_admitted, is_unknown } in &self.results {
            let times = shown.iter().filter(|write| write.number == *number).count();
            let is_right = if *is_unknown { times <= 1 } else { times == usize::from(*is_admitted) };
            if !is_right {
                return Err(format!("write {number} landed {times} times, and admitted is {is_admitted}"));
            }
        }
        let mut counts = self.history.judge(&shown, true)?;
        counts.crashes = self.crashes;
        Ok(counts)
    }
}

/// A fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    LoseRequest,
    LoseAnswer,
    Late,
    Twice,
    ThrottleAfterApplying,
    Refuse,
}

/// Equal bytes have an equal version.
fn version(value: &Bytes) -> Version {
    let hash: [u8; 32] = Sha256::digest(value).into();
    Version::new(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>())
}
