use futures_util::future::join_all;
use tenure_store::{Key, Token};

use super::{Counts, History, Resource, Writer};
use crate::FencingToken;

/// What the writers do. Every choice follows from the seed; the interleaving on the real resource does not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The seed of all choices.
    pub seed: u64,
    /// Number of writers at once.
    pub writers: usize,
    /// Number of calls of each writer.
    pub calls: u32,
    /// The first token. The tokens grow from it during the run.
    pub first_token: u64,
    /// The lease.
    pub name: Key,
    /// True if the resource keeps all its writes, such as a log or a table; false if each write replaces the one before.
    pub keeps_all: bool,
}

impl Plan {
    /// Eight writers with 50 calls each, under the lease `suite`, on a resource where each write replaces the one before.
    pub fn new(seed: u64) -> Self {
        let name = Key::parse("suite").expect("a valid name");
        Self { seed, writers: 8, calls: 50, first_token: 1, name, keeps_all: false }
    }

    /// Sets the number of writers.
    #[must_use]
    pub fn writers(self, writers: usize) -> Self {
        Self { writers, ..self }
    }

    /// Sets the number of calls of each writer.
    #[must_use]
    pub fn calls(self, calls: u32) -> Self {
        Self { calls, ..self }
    }

    /// Sets the first token, for a resource that has seen others.
    #[must_use]
    pub fn first_token(self, first_token: u64) -> Self {
        Self { first_token, ..self }
    }

    /// Sets the lease.
    #[must_use]
    pub fn name(self, name: Key) -> Self {
        Self { name, ..self }
    }

    /// The resource keeps all its writes.
    #[must_use]
    pub fn keeps_all(self) -> Self {
        Self { keeps_all: true, ..self }
    }

    pub(super) async fn run<R: Resource>(self, resource: &R) -> Result<Counts, String> {
        let history = History::default();
        let crashes = join_all((0..self.writers).map(|index| self.write(resource, &history, index))).await;
        let mut counts = history.judge(&resource.shown().await, self.keeps_all)?;
        counts.crashes = crashes.iter().sum();
        Ok(counts)
    }

    /// One writer. Its token is old, present or new by chance; it may crash and lose its memory.
    async fn write<R: Resource>(&self, resource: &R, history: &History, index: usize) -> u64 {
        let mut chance =
            fastrand::Rng::with_seed(self.seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
        let mut writer = resource.writer().await;
        let mut crashes = 0;
        for call in 0..self.calls {
            // The newest token grows by one with every few calls of all writers together.
            let newest = u64::from(call) / 3;
            let behind = if chance.u8(..3) == 0 { chance.u64(0..=newest.min(9)) } else { 0 };
            let token = Token::new(self.first_token + newest - behind).expect("a token");
            let token = FencingToken::new(self.name.clone(), token).expect("not zero");
            if chance.u8(..20) == 0 {
                writer = resource.writer().await;
                crashes += 1;
            }
            let began = history.begins();
            if chance.u8(..8) == 0
                && let Some(answer) = writer.seal(&token).await
            {
                history.ends(began, token.token(), None, &answer);
                continue;
            }
            let number = index as u64 * 1_000_000 + u64::from(call);
            let answer = writer.write(&token, number).await;
            history.ends(began, token.token(), Some(number), &answer);
        }
        crashes
    }
}
