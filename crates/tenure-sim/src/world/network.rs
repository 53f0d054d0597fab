//! Delivery of calls to the store, and of answers back: lost, late, duplicated, or retried on the way.

use tenure_core::machine::{Content, Fault as CallFault, Input, Look, Outcome, Write};
use tenure_store::Expect;

use super::World;
use super::event::{Event, LeaseTarget};
use super::heard::AnswerWords;
use super::lease::Doubt;
use super::phases::Phase;
use crate::parts::{Departure, Passage};
use crate::tally::{Fault, Number};

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
    /// The run of the server to which its connection leads.
    run: u32,
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
        let basis = match &body {
            MessageBody::Write(Write { expect: Expect::Version(version), .. }) => process.content_of(version),
            MessageBody::Write(_) | MessageBody::Read => None,
        };
        let gives_up = process.clock.reaches(process.clock.local(now) + process.member.timeout());
        let body = match self.over_connection(target, body) {
            Ok(body) => body,
            Err(input) => return self.answers_unsent(target, writing, input),
        };
        let run = self.present_run();
        let process = &mut self.processes[target.process as usize];
        let Some(lease) = process.leases[target.slot as usize].as_mut() else { return };
        lease.call += 1;
        lease.calls += 1;
        lease.writing = writing;
        let call = lease.call;
        let ttl = process.member.ttl();
        self.count_holders_call(target);
        if self.fails_by_outage(target, call, gives_up) {
            return;
        }
        let process = &mut self.processes[target.process as usize];
        let departure = Departure { now, writing, storm: now < self.storm_until, gives_up, ttl };
        let flight = match self.network.send(&mut self.rng, &mut self.tally, &mut process.link, departure) {
            Passage::Fails(fault) => return self.answer_soon(target, call, writing, fault),
            Passage::Lost => return self.agenda.push(gives_up, Event::Unanswered { target, call }),
            Passage::Flies(flight) => flight,
        };
        if let Some(at) = flight.unanswered {
            self.agenda.push(at, Event::Unanswered { target, call });
        }
        let message = self.messages.insert(Message {
            target,
            call,
            body,
            basis,
            sent: now,
            gives_up,
            answering: flight.answering,
            awaited: flight.unanswered.is_none(),
            throttled: flight.throttled,
            copies: flight.copies,
            run,
        });
        for copy in 0..flight.copies {
            self.agenda.push(flight.arrivals[copy as usize], Event::Request { message, copy });
        }
    }

    /// A request, or a copy of one, arrives at the store.
    pub(super) fn request_arrives(&mut self, number: u32, copy: u8) {
        let message = self.messages.get_mut(number);
        message.copies -= 1;
        let last = message.copies == 0;
        let (target, call, gives_up) = (message.target, message.call, message.gives_up);
        let (basis, sent, throttled, run) = (message.basis, message.sent, message.throttled, message.run);
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
        if run != self.present_run() {
            // A restart has broken the connection.
            if answers {
                self.agenda.push(self.now.min(gives_up), Event::Unanswered { target, call });
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
        let input = self.in_run(input);
        if answers {
            self.answer(target, call, input, gives_up, throttled);
        }
    }

    fn answer(&mut self, target: LeaseTarget, call: u32, input: Input, gives_up: u64, throttled: bool) {
        let generation = self.store.generation();
        let process = &mut self.processes[target.process as usize];
        let ttl = process.member.ttl();
        let departure = Departure { now: self.now, writing: false, storm: false, gives_up, ttl };
        let at = self.network.answer(&mut self.rng, &mut self.tally, &mut process.link, departure);
        let Some(at) = at else { return self.agenda.push(gives_up, Event::Unanswered { target, call }) };
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

    pub(super) fn answer_soon(&mut self, target: LeaseTarget, call: u32, writing: bool, fault: CallFault) {
        let input = if writing { Input::Written(Outcome::Fault(fault)) } else { Input::Read(Err(fault)) };
        let answer = self.answers.insert((input, 0));
        let at = self.now + self.network.least;
        self.agenda.push(at, Event::Answer { target, call, answer });
    }

    /// The process answers a call itself, and sends nothing.
    fn answers_unsent(&mut self, target: LeaseTarget, writing: bool, input: Input) {
        let Some(lease) = self.lease(target) else { return };
        lease.call += 1;
        lease.writing = writing;
        let call = lease.call;
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

    /// Time of arrival of a message that is sent now.
    pub(super) fn arrival(&mut self) -> u64 {
        self.network.arrival(&mut self.rng, &mut self.tally, self.now)
    }
}
