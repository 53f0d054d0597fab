//! Users of plain keys: they create, change, read, renew and release entries.

use std::time::Duration;

use tenure_core::Token;
use tenure_core::keys::{KeyAnswer, KeyOperation};
use tenure_core::record::Ttl;

use super::PrimitivesWorld;
use super::actor::{Actor, ActorRole, Notice};
use super::happening::Port;
use crate::time::MILLI;

/// A user of plain keys.
#[derive(Debug)]
pub(super) struct KeyUser {
    /// Number of secrets that it had: a restart may have a new one.
    secrets: u32,
    /// The latest revisions that it saw of each key, the last one at the end.
    seen: Vec<[Token; 2]>,
    pending: Option<(Port, usize)>,
}

impl KeyUser {
    /// Its process was killed.
    pub(super) fn dies(&mut self) {
        self.pending = None;
    }
}

impl PrimitivesWorld<'_> {
    pub(super) fn key_users_appear(&mut self) {
        let keys = self.plan.plain_keys().len();
        if keys == 0 {
            return;
        }
        for process in 0..self.nodes.len() {
            for _ in 0..self.rng.between(1, 2) {
                let user = KeyUser { secrets: 1, seen: vec![[Token::ZERO; 2]; keys], pending: None };
                self.actors.push(Actor::new(process, ActorRole::Key(user)));
            }
        }
    }

    fn key_user(&mut self, actor: usize) -> &mut KeyUser {
        match &mut self.actors[actor].role {
            ActorRole::Key(user) => user,
            _ => unreachable!("the role of an actor never changes"),
        }
    }

    pub(super) fn key_user_starts(&mut self, actor: usize) {
        if self.key_user(actor).pending.is_some() {
            return;
        }
        let new_secret = self.rng.chance(20);
        let number = self.rng.index(self.plan.plain);
        let key = self.plan.plain_keys().start + number;
        let operation = self.draws_operation(actor, number);
        let ttl = self.nodes[self.actors[actor].process].member.ttl();
        let creates = matches!(operation, KeyOperation::Set { revision: Token::ZERO, .. });
        let waits = creates && self.rng.chance(300);
        let wait = waits.then(|| Duration::from_nanos(self.rng.between(0, 2 * ttl)));
        let user = self.key_user(actor);
        user.secrets += u32::from(new_secret);
        let secret = secret_of(actor, user.secrets);
        let process = self.actors[actor].process;
        self.note(process, format_args!("key user {actor}: {operation:?} of key {key}"));
        let port = self.operates(actor, key, operation, secret, wait);
        // An answer that came at once is handled after this event.
        self.key_user(actor).pending = Some((port, number));
    }

    fn draws_operation(&mut self, actor: usize, number: usize) -> KeyOperation {
        let [older, latest] = self.key_user(actor).seen[number];
        let revision = match self.rng.below(100) {
            0..30 => Token::ZERO,
            30..60 => latest,
            60..65 => older,
            65..80 => return KeyOperation::Get,
            80..92 => return KeyOperation::Renew,
            _ => return KeyOperation::Release,
        };
        let process = self.actors[actor].process;
        let millis = self.nodes[process].member.ttl() / MILLI;
        let forever = self.rng.chance(100);
        let millis = self.rng.between((millis / 4).max(1_000), millis);
        let ttl = if forever { None } else { Ttl::from_millis(millis) };
        KeyOperation::Set { revision, value: format!("{}", self.now).into(), ttl }
    }

    pub(super) fn key_user_notified(&mut self, actor: usize, port: Port, notice: Notice) {
        let Notice::Answered(answer) = notice else { return };
        let Some((_, number)) = self.key_user(actor).pending.take_if(|(pending, _)| *pending == port) else {
            return;
        };
        let shown = match &*answer {
            KeyAnswer::Found(Some(entry)) | KeyAnswer::Conflict(Some(entry)) => Some(entry),
            KeyAnswer::Created(entry) | KeyAnswer::Updated(entry) | KeyAnswer::Renewed(entry) => Some(entry),
            _ => None,
        };
        let revision = shown.map(|entry| entry.record.token);
        let seen = &mut self.key_user(actor).seen[number];
        if let Some(revision) = revision.filter(|revision| seen[1] != *revision) {
            *seen = [seen[1], revision];
        }
        let ttl = self.nodes[self.actors[actor].process].member.ttl();
        let rest = self.rest(ttl) / 2;
        self.start_at(actor, self.now + rest);
    }
}

/// The hash of a secret that no other user has.
pub(super) fn secret_of(actor: usize, number: u32) -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&(actor as u64).to_be_bytes());
    hash[8..12].copy_from_slice(&number.to_be_bytes());
    hash
}
