//! Operations on plain keys: the driver of their machines.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::keys::{KeyAnswer, KeyMachine, KeyOperation, KeyOwner, KeyParams, KeyRules};
use tenure_core::machine::{Effect, Input, Outcome, Purpose, Rules, Standard, Write};

use super::PrimitivesWorld;
use super::actor::Notice;
use super::caller::Engine;
use super::calls::LetterBody;
use super::happening::Port;
use super::judges::{EntryOperation, EntryWrite};
use crate::Invariant;
use crate::tally::Met;

/// One operation on a plain key.
#[derive(Debug)]
pub(super) struct EntryCall {
    machine: KeyMachine,
    facts: EntryOperation,
    /// True if the outcome of its latest write is in doubt.
    doubt: bool,
}

impl PrimitivesWorld<'_> {
    /// Begins an operation on a plain key. With `wait`, a creation waits for that long, on the clock of the process.
    pub(super) fn operates(
        &mut self,
        actor: usize,
        key: usize,
        operation: KeyOperation,
        secret: [u8; 32],
        wait: Option<Duration>,
    ) -> Port {
        let node = &self.nodes[self.actors[actor].process];
        let timing = node.member.timing;
        let now = node.local(self.now);
        let owner = KeyOwner { holder: Arc::clone(&node.holder), secret_hash: secret };
        let params = KeyParams {
            operation: operation.clone(),
            owner,
            store_clock: self.plan.store.clock,
            clock_tick: Duration::from_nanos(self.plan.store.tick),
            drift: timing.drift(),
            fresh_for: timing.ttl(),
            retry: timing.retry(),
            retry_max: timing.period(),
            wait_until: wait.map(|wait| now + wait),
            give_up_at: now + wait.unwrap_or_default() + timing.ttl().as_duration() * 2,
        };
        let machine = KeyMachine::with_rules(params, self.seed.keys);
        let facts = EntryOperation { operation, secret_hash: secret, began: self.now, writes: Vec::new() };
        let call = EntryCall { machine, facts, doubt: false };
        let port = self.add_caller(actor, key, Engine::Entry(Box::new(call)));
        self.step_entry(port, Input::Start);
        port
    }

    /// Gives an input to the machine of an operation, and carries out its effects.
    pub(super) fn step_entry(&mut self, port: Port, input: Input) {
        let mut effects = Vec::new();
        let ambient = self.ambient(port.process as usize);
        let node = &mut self.nodes[port.process as usize];
        let Some(caller) = self.callers[port.caller as usize].as_deref_mut() else { return };
        let key = caller.key;
        let Engine::Entry(call) = &mut caller.engine else { return };
        match &input {
            Input::Written(Outcome::Applied { .. }) => call.doubt = false,
            Input::Written(_) => call.doubt = true,
            _ => {}
        }
        let answer = call.machine.step(&ambient, &mut node.sightings[key], input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Read => self.send(port, LetterBody::Read),
                Effect::Write(write) => {
                    self.remember_entry_write(port, key, &write);
                    self.sends_write(port, write);
                }
                Effect::SleepUntil(at) => self.caller_sleeps(port, at.as_nanos()),
                Effect::LookAtWitness { .. } => unreachable!("plain keys have no witness"),
                Effect::Tell(_) => self.tally.met(Met::RevisionWentBack),
            }
        }
        if let Some(answer) = answer {
            self.judge_answer(port, key, &answer);
            self.notices.push_back((port, Notice::Answered(Box::new(answer))));
        }
    }

    /// Stores the facts about a write that the judges need.
    fn remember_entry_write(&mut self, port: Port, key: usize, write: &Write) {
        let node = &self.nodes[port.process as usize];
        let (local, drift) = (node.local(self.now), node.member.timing.drift());
        // Knowledge of the process: the version that it last saw has run out, by the standard rule.
        let seen = node.sightings[key].latest();
        let record = seen.and_then(|seen| match &seen.content {
            tenure_core::machine::Content::Record(record, _) => Some((seen.from, record)),
            _ => None,
        });
        let knew_run_out =
            record.is_some_and(|(from, record)| Standard.has_run_out(from, record.ttl, drift, local));
        let by = (port.process, node.incarnation);
        let late = record.is_some_and(|(_, record)| {
            let sent = self.judges[key].entries.own_sent(record.nonce, by);
            let deadline = |sent| record.ttl.map(|ttl| Standard.deadline(sent, sent, ttl, drift));
            let deadline = sent.and_then(deadline).filter(|_| write.purpose == Purpose::Renew);
            deadline.is_some_and(|deadline| !Standard.may_go_on(local, deadline))
        });
        let Some(Engine::Entry(call)) = self.caller(port).map(|caller| &mut caller.engine) else { return };
        if write.purpose != Purpose::Plant {
            call.facts.writes.push(write.record.nonce);
        }
        let revision = match &call.facts.operation {
            KeyOperation::Set { revision, .. } => Some(revision.get()),
            _ => None,
        };
        let owner = call.facts.secret_hash;
        let fact = EntryWrite { revision, owner, knew_run_out, late, by, sent: local };
        self.judges[key].entries.sends(write.record.nonce, fact);
    }

    fn judge_answer(&mut self, port: Port, key: usize, answer: &KeyAnswer) {
        self.note(port.process as usize, format_args!("#{} is answered {answer:?}", port.caller));
        let now = self.now;
        let Some(Engine::Entry(call)) =
            self.callers[port.caller as usize].as_deref().map(|caller| &caller.engine)
        else {
            return;
        };
        self.tally.met(match answer {
            KeyAnswer::Found(_) => Met::EntryFound,
            KeyAnswer::Created(_) => Met::EntryCreated,
            KeyAnswer::Updated(_) => Met::EntryUpdated,
            KeyAnswer::Conflict(_) => Met::EntryConflict,
            KeyAnswer::Renewed(_) => Met::EntryRenewed,
            KeyAnswer::Released => Met::EntryReleased,
            KeyAnswer::Denied { in_doubt: true, .. } => Met::EntryInDoubt,
            KeyAnswer::Denied { .. } => Met::EntryDenied,
        });
        let succeeds = matches!(
            answer,
            KeyAnswer::Created(_) | KeyAnswer::Updated(_) | KeyAnswer::Renewed(_) | KeyAnswer::Released
        );
        if call.doubt && succeeds {
            self.tally.met(Met::EntryResolved);
        }
        let entries = &mut self.judges[key].entries;
        self.verdicts.judge(now, Invariant::S5, entries.is_truthful(&call.facts, answer));
        self.verdicts.judge(now, Invariant::K1, entries.is_linearizable(now, &call.facts, answer));
    }
}
