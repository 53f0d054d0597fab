//! Calls of the store, and their answers.

use tenure_core::machine::{Fault as CallFault, Input, Outcome, Purpose, Write};

use super::happening::{Happening, Port};
use super::phases::Stretch;
use super::{Engine, PrimitivesWorld};
use crate::parts::{Departure, Passage};
use crate::tally::{Fault, Met, Number};

/// A request in flight.
#[derive(Debug)]
pub(super) struct Letter {
    port: Port,
    call: u32,
    key: usize,
    body: LetterBody,
    sent: u64,
    gives_up: u64,
    answering: u8,
    awaited: bool,
    throttled: bool,
    copies: u8,
}

/// Content of a request.
#[derive(Clone, Debug)]
pub(super) enum LetterBody {
    Read,
    /// A listing of the group whose size has the key.
    List,
    Write(Write),
}

impl PrimitivesWorld<'_> {
    /// Sends a call of a caller.
    pub(super) fn send(&mut self, port: Port, body: LetterBody) {
        let now = self.now;
        let writing = matches!(body, LetterBody::Write(_));
        self.tally.count(if writing { Number::Writes } else { Number::Reads });
        let Some(caller) = self.callers[port.caller as usize].as_deref_mut() else { return };
        caller.call += 1;
        caller.writing = writing;
        let (call, key) = (caller.call, caller.key);
        self.actors[caller.actor].calls += 1;
        let node = &mut self.nodes[port.process as usize];
        let gives_up = node.clock.reaches(node.clock.local(now) + node.member.timeout());
        let ttl = node.member.ttl();
        let departure = Departure { now, writing, storm: now < self.storm_until, gives_up, ttl };
        let flight = match self.network.send(&mut self.rng, &mut self.tally, &mut node.link, departure) {
            Passage::Fails(fault) => {
                let answer = self.answers.insert(failed(writing, fault));
                let at = now + self.network.least;
                return self.agenda.push(at, Happening::Answer { port, call, answer });
            }
            Passage::Lost => return self.agenda.push(gives_up, Happening::Unanswered { port, call }),
            Passage::Flies(flight) => flight,
        };
        if let Some(at) = flight.unanswered {
            self.agenda.push(at, Happening::Unanswered { port, call });
        }
        let message = self.letters.insert(Letter {
            port,
            call,
            key,
            body,
            sent: now,
            gives_up,
            answering: flight.answering,
            awaited: flight.unanswered.is_none(),
            throttled: flight.throttled,
            copies: flight.copies,
        });
        for copy in 0..flight.copies {
            self.agenda.push(flight.arrivals[copy as usize], Happening::Request { message, copy });
        }
    }

    /// A request, or a copy of one, arrives at the store.
    pub(super) fn request_arrives(&mut self, number: u32, copy: u8) {
        let letter = self.letters.get_mut(number);
        letter.copies -= 1;
        let last = letter.copies == 0;
        let (port, call, key) = (letter.port, letter.call, letter.key);
        let (sent, gives_up, throttled) = (letter.sent, letter.gives_up, letter.throttled);
        let answers = letter.awaited && copy == letter.answering;
        let body = if last { self.letters.take(number).body } else { letter.body.clone() };
        if self.stretch != Stretch::Faults && sent < self.plan.length {
            // Requests that were delayed in the network are dropped when it heals.
            if answers {
                self.agenda.push(gives_up.max(self.now), Happening::Unanswered { port, call });
            }
            return;
        }
        let late = self.now >= gives_up;
        if late {
            self.tally.fault(Fault::Late);
        }
        let input = match body {
            LetterBody::Read => Input::Read(Ok(self.store[key].read(self.now))),
            LetterBody::List => {
                if answers {
                    self.listing_arrives(port, key);
                }
                Input::Read(Ok(self.store[key].read(self.now)))
            }
            LetterBody::Write(write) => Input::Written(self.write_arrives(port, key, &write, late)),
        };
        if answers {
            self.answer(port, call, input, gives_up, throttled);
        }
    }

    fn answer(&mut self, port: Port, call: u32, input: Input, gives_up: u64, throttled: bool) {
        let node = &mut self.nodes[port.process as usize];
        let ttl = node.member.ttl();
        let departure = Departure { now: self.now, writing: false, storm: false, gives_up, ttl };
        let at = self.network.answer(&mut self.rng, &mut self.tally, &mut node.link, departure);
        let Some(at) = at else {
            return self.agenda.push(gives_up, Happening::Unanswered { port, call });
        };
        let input = match input {
            input if !throttled => input,
            Input::Written(outcome) => {
                let applied = matches!(outcome, Outcome::Applied { .. });
                self.tally.fault(if applied { Fault::ThrottledAfter } else { Fault::ThrottledBefore });
                failed(true, CallFault::Throttled(None))
            }
            _ => failed(false, CallFault::Throttled(None)),
        };
        let answer = self.answers.insert(input);
        self.agenda.push(at, Happening::Answer { port, call, answer });
    }

    /// A write arrives at the store. `late` is true if the sender no longer waits for the answer.
    fn write_arrives(&mut self, port: Port, key: usize, write: &Write, late: bool) -> Outcome {
        if write.purpose == Purpose::Plant && self.store[key].has_superseded(write.record.nonce) {
            // A copy of a plant that arrives after a deletion would bring back the same version.
            return Outcome::Conflict;
        }
        let before = self.store[key].content().clone();
        let outcome = self.store[key].write(self.now, write);
        let applied = matches!(outcome, Outcome::Applied { .. });
        let word = if applied { "applied" } else { "conflict" };
        self.note(
            port.process as usize,
            format_args!("#{} {:?} of key {key} at the store: {word}", port.caller, write.purpose),
        );
        if !applied && self.judges[key].entries.conflicts(write.record.nonce) {
            self.tally.met(Met::EntryRetried);
        }
        if applied {
            self.writes_applied += 1;
            if late {
                self.tally.met(Met::LateApplied);
            }
            self.write_applied(key, &before, write);
            self.give_hints(key);
        }
        outcome
    }

    fn give_hints(&mut self, key: usize) {
        if self.plan.store.hints == 0 {
            return;
        }
        for process in 0..self.nodes.len() {
            if self.rng.chance(self.plan.store.hints) {
                let at = self.network.arrival(&mut self.rng, &mut self.tally, self.now);
                self.agenda.push(at, Happening::Hint { process: process as u16, key: key as u16 });
            }
        }
    }

    // ── answers at the process ────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn answer_arrives(&mut self, port: Port, call: u32, answer: u32) {
        let input = self.answers.take(answer);
        if let Input::Written(Outcome::Fault(CallFault::Throttled(_))) = &input {
            self.tally.count(Number::Unknown);
        }
        self.answered(port, call, input);
    }

    pub(super) fn call_unanswered(&mut self, port: Port, call: u32) {
        let Some(writing) = self.caller(port).map(|caller| caller.writing) else { return };
        if writing {
            self.tally.count(Number::Unknown);
        }
        self.answered(port, call, failed(writing, CallFault::Unknown));
    }

    fn answered(&mut self, port: Port, call: u32, input: Input) {
        let Some(caller) = self.caller(port).filter(|caller| caller.call == call) else { return };
        let step = match caller.engine {
            Engine::Lease(_) => Self::step_lease,
            Engine::Entry(_) => Self::step_entry,
            Engine::Slot(_) => Self::slot_looked,
            Engine::Listing(_) => Self::group_listed,
            Engine::Look(_) => Self::looked,
        };
        self.note(
            port.process as usize,
            format_args!("#{} hears {}", port.caller, crate::world::AnswerWords(&input)),
        );
        step(self, port, input);
    }
}

/// The answer to a call that failed.
fn failed(writing: bool, fault: CallFault) -> Input {
    if writing { Input::Written(Outcome::Fault(fault)) } else { Input::Read(Err(fault)) }
}
