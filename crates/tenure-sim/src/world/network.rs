//! Delivery of calls to the store, and of answers back: lost, late, duplicated, or retried on the way.

use std::time::Duration;

use tenure_core::machine::{Content, Fault as CallFault, Input, Look, Outcome, Write};
use tenure_store::{Expect, Reason};

use super::World;
use super::event::{Event, LeaseTarget};
use super::heard::AnswerWords;
use super::lease::Doubt;
use super::phases::Phase;
use crate::tally::{Fault, Number};
use crate::time::SECOND;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Message {
    target: LeaseTarget,
    call: u32,
    body: MessageBody,
    /// Generation of the content that a write replaces, as far as its sender knows.
    basis: Option<u64>,
    sent: u64,
    /// Time at which its sender gives up.
    gives_up: u64,
    /// The copy whose answer returns.
    answering: u8,
    /// True if the sender still waits for the answer.
    awaited: bool,
    /// True if the answer is that the store is overloaded, whatever the store did.
    throttled: bool,
    /// Number of copies that have not arrived yet.
    copies: u8,
}

/// Content of a request.
#[derive(Debug)]
pub(super) enum MessageBody {
    Read,
    Write(Write),
}

impl World<'_> {
    /// Sends a call of a machine.
    pub(super) fn send(&mut self, target: LeaseTarget, body: MessageBody) {
        let now = self.now;
        let writing = matches!(body, MessageBody::Write(_));
        self.tally.count(if writing { Number::Writes } else { Number::Reads });
        let process = &mut self.processes[target.process as usize];
        let cut = process.cut;
        let basis = match &body {
            MessageBody::Write(Write { expect: Expect::Version(version), .. }) => process.content_of(version),
            MessageBody::Write(_) | MessageBody::Read => None,
        };
        let gives_up = process.clock.reaches(process.clock.local(now) + process.member.timeout());
        let Some(lease) = process.leases[target.slot as usize].as_mut() else { return };
        lease.call += 1;
        lease.calls += 1;
        lease.writing = writing;
        let call = lease.call;
        let is_cut = cut.requests || (writing && cut.writes) || (!writing && cut.reads);
        if self.rng.chance(self.network.unreachable) || (is_cut && self.rng.chance(100)) {
            self.tally.fault(Fault::Unreachable);
            return self.answer_soon(target, call, writing, CallFault::Refused(Reason::Unreachable));
        }
        let storm = now < self.storm_until && self.rng.chance(600);
        let throttled = storm && self.rng.chance(500);
        if storm && !throttled {
            self.tally.fault(Fault::ThrottledBefore);
            let after = self.rng.chance(500).then(|| Duration::from_millis(self.rng.between(1, 500)));
            return self.answer_soon(target, call, writing, CallFault::Throttled(after));
        }
        if is_cut || self.loses(target, self.network.request_loss) {
            self.tally.fault(Fault::RequestLost);
            self.agenda.push(gives_up, Event::Unanswered { target, call });
            return;
        }
        let mut message = Message {
            target,
            call,
            body,
            basis,
            sent: now,
            gives_up,
            answering: 0,
            awaited: true,
            throttled,
            copies: 1,
        };
        let mut arrivals = [self.arrival(), 0];
        if self.rng.chance(self.network.duplicate) {
            self.tally.fault(Fault::Duplicated);
            arrivals[1] = arrivals[0] + self.rng.skewed(0, self.network.spike_most);
            message.copies = 2;
        } else if self.rng.chance(self.network.balance) {
            self.tally.fault(Fault::Balanced);
            arrivals[1] = arrivals[0] + self.one_way();
            message.copies = 2;
            message.answering = 1;
        }
        if self.rng.chance(self.network.reset) {
            self.tally.fault(Fault::Reset);
            message.awaited = false;
            let at = (now + self.one_way()).min(gives_up);
            self.agenda.push(at, Event::Unanswered { target, call });
        } else if arrivals[message.answering as usize] >= gives_up {
            message.awaited = false;
            self.agenda.push(gives_up, Event::Unanswered { target, call });
        }
        let copies = message.copies;
        let message = self.messages.insert(message);
        for copy in 0..copies {
            self.agenda.push(arrivals[copy as usize], Event::Request { message, copy });
        }
    }

    /// A request, or a copy of one, arrives at the store.
    pub(super) fn request_arrives(&mut self, number: u32, copy: u8) {
        let message = self.messages.get_mut(number);
        message.copies -= 1;
        let last = message.copies == 0;
        let (target, call, gives_up) = (message.target, message.call, message.gives_up);
        let (basis, sent, throttled) = (message.basis, message.sent, message.throttled);
        let answers = message.awaited && copy == message.answering;
        let body = if last {
            self.messages.take(number).body
        } else {
            match &message.body {
                MessageBody::Read => MessageBody::Read,
                MessageBody::Write(write) => MessageBody::Write(write.clone()),
            }
        };
        if self.phase != Phase::Faults && sent < self.swarm.length {
            // Requests that were delayed in the network are dropped when it heals.
            if answers {
                self.agenda.push(gives_up.max(self.now), Event::Unanswered { target, call });
            }
            return;
        }
        let late = self.now >= gives_up;
        if late {
            self.tally.fault(Fault::Late);
        }
        let input = match body {
            MessageBody::Read => Input::Read(Ok(self.store.read(self.now))),
            MessageBody::Write(write) => Input::Written(self.write_arrives(target, &write, basis, late)),
        };
        if answers {
            self.answer(target, call, input, gives_up, throttled);
        }
    }

    fn answer(&mut self, target: LeaseTarget, call: u32, input: Input, gives_up: u64, throttled: bool) {
        let generation = self.store.generation();
        let process = &self.processes[target.process as usize];
        let lost = process.cut.answers || self.loses(target, self.network.answer_loss);
        let at = self.arrival();
        if lost || at >= gives_up {
            self.tally.fault(Fault::AnswerLost);
            self.agenda.push(gives_up, Event::Unanswered { target, call });
            return;
        }
        let input = match input {
            input if !throttled => input,
            Input::Written(outcome) => {
                let applied = matches!(outcome, Outcome::Applied { .. });
                self.tally.fault(if applied { Fault::ThrottledAfter } else { Fault::ThrottledBefore });
                Input::Written(Outcome::Fault(CallFault::Throttled(None)))
            }
            _ => Input::Read(Err(CallFault::Throttled(None))),
        };
        let answer = self.answers.insert((input, generation));
        self.agenda.push(at, Event::Answer { target, call, answer });
    }

    fn answer_soon(&mut self, target: LeaseTarget, call: u32, writing: bool, fault: CallFault) {
        let input = if writing { Input::Written(Outcome::Fault(fault)) } else { Input::Read(Err(fault)) };
        let answer = self.answers.insert((input, 0));
        let at = self.now + self.network.least;
        self.agenda.push(at, Event::Answer { target, call, answer });
    }

    // ── answers at the process ────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn answer_arrives(&mut self, target: LeaseTarget, call: u32, answer: u32) {
        let (input, generation) = self.answers.take(answer);
        let Some(lease) = self.lease(target).filter(|lease| lease.call == call) else { return };
        match &input {
            Input::Read(Ok(Look { content: Content::Record(record, version), .. })) => {
                lease.shown = Some(record.nonce);
                let now = self.now;
                let process = &mut self.processes[target.process as usize];
                process.note_version(version, generation);
                if record.token.get() > process.shown.0 {
                    process.shown = (record.token.get(), process.clock.local(now));
                }
            }
            Input::Written(Outcome::Applied { version, .. }) => {
                lease.doubt = None;
                self.processes[target.process as usize].note_version(version, generation);
            }
            Input::Written(Outcome::Conflict) => lease.doubt = Some(Doubt::Conflict),
            Input::Written(Outcome::Fault(CallFault::Throttled(_))) => {
                lease.doubt = Some(Doubt::Timeout);
                self.tally.count(Number::Unknown);
            }
            _ => {}
        }
        self.note(target.process as usize, format_args!("#{} hears {}", target.lease, AnswerWords(&input)));
        self.step_machine(target, input);
    }

    pub(super) fn call_unanswered(&mut self, target: LeaseTarget, call: u32) {
        let Some(lease) = self.lease(target).filter(|lease| lease.call == call) else { return };
        let input = if lease.writing {
            lease.doubt = Some(Doubt::Timeout);
            self.tally.count(Number::Unknown);
            Input::Written(Outcome::Fault(CallFault::Unknown))
        } else {
            Input::Read(Err(CallFault::Unknown))
        };
        self.note(target.process as usize, format_args!("#{} hears {}", target.lease, AnswerWords(&input)));
        self.step_machine(target, input);
    }

    // ── delays and losses ─────────────────────────────────────────────────────────────────────────────────────────

    /// Time of arrival of a message that is sent now.
    pub(super) fn arrival(&mut self) -> u64 {
        let mut at = self.now + self.one_way();
        if self.rng.chance(self.network.spike) {
            self.tally.fault(Fault::Spike);
            at += self.rng.skewed(0, self.network.spike_most);
        }
        at.next_multiple_of(self.network.quantum)
    }

    /// Delay in one direction.
    fn one_way(&mut self) -> u64 {
        self.network.least + self.rng.skewed(0, self.network.spread)
    }

    /// True if a message of this process is lost.
    fn loses(&mut self, target: LeaseTarget, chance: u32) -> bool {
        if !self.rng.chance(chance) {
            return false;
        }
        let process = &mut self.processes[target.process as usize];
        let apart = self.network.loss_apart * 2 * process.member.ttl();
        let allowed = apart == 0 || self.now.saturating_sub(process.lost_at) >= apart.max(SECOND);
        if allowed {
            process.lost_at = self.now;
        }
        allowed
    }
}
