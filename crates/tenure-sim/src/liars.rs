//! Stores that lie about their conditional writes, and the check at connect that must refuse them.
//!
//! The check is the production one. It is asynchronous, but these stores answer at once and its pauses end at once, so
//! it completes at the first poll.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use tenure_core::check::connect_check;
use tenure_store::{
    Applied, BoxStream, Conflict, Entry, Expect, Guarantees, Identity, Key, Prefix, Put, Reach, Reading,
    Store, StoreError, StoreFuture, Version, Write,
};

use crate::rng::Rng;

/// True if the check refuses a store with a random lie.
pub(crate) fn refuses_liar(rng: &mut Rng) -> bool {
    let lie = rng.pick(LiarKind::ALL);
    refuses(lie, rng)
}

/// True if the check refuses an honest store.
pub(crate) fn refuses_honest(rng: &mut Rng) -> bool {
    refuses(LiarKind::Nothing, rng)
}

fn refuses(lie: LiarKind, rng: &mut Rng) -> bool {
    let store = Liar { lie, entry: Mutex::new(None) };
    let check = connect_check(&store, &|_| Box::pin(std::future::ready(())), rng.wide());
    check.now_or_never().expect("nothing waits").is_err()
}

/// A store of one key.
#[derive(Debug)]
struct Liar {
    lie: LiarKind,
    entry: Mutex<Option<(Bytes, u64)>>,
}

/// The lie of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LiarKind {
    /// None: the store is honest.
    Nothing,
    /// Creates over an existing entry.
    IgnoresCreate,
    /// Replaces any version.
    IgnoresReplace,
    /// Ignores both conditions.
    IgnoresBoth,
    /// Reports a write that it did not make.
    WritesNothing,
    /// Reports a conflict, and writes anyway.
    WritesAnyway,
    /// Gives every entry the same version, which is its declared impossible version.
    OneVersion,
    /// Gives every entry the empty version.
    NoVersion,
    /// Declares too few guarantees.
    PromisesNothing,
}

impl LiarKind {
    /// All lies, without `Nothing`.
    const ALL: &[Self] = &[
        Self::IgnoresCreate,
        Self::IgnoresReplace,
        Self::IgnoresBoth,
        Self::WritesNothing,
        Self::WritesAnyway,
        Self::OneVersion,
        Self::NoVersion,
        Self::PromisesNothing,
    ];
}

impl Liar {
    fn version(&self, number: u64) -> Version {
        match self.lie {
            LiarKind::OneVersion => self.identity().impossible_version,
            LiarKind::NoVersion => Version::new(""),
            _ => Version::new(number.to_string()),
        }
    }

    fn apply(&self, value: Bytes, expect: &Expect) -> Put {
        let mut entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = match (expect, &*entry) {
            (Expect::Absent, present) => present.is_none() || self.ignores_create(),
            (Expect::Version(_), None) => false,
            (Expect::Version(expected), Some((_, number))) => {
                *expected == self.version(*number) || self.ignores_replace()
            }
        };
        let number = entry.as_ref().map_or(0, |(_, number)| *number) + 1;
        if self.lie != LiarKind::WritesNothing && (holds || self.lie == LiarKind::WritesAnyway) {
            *entry = Some((value, number));
        }
        if holds || self.lie == LiarKind::WritesNothing {
            Put::Applied(Applied::new(self.version(number)))
        } else {
            Put::Conflict(Conflict)
        }
    }

    fn ignores_create(&self) -> bool {
        matches!(self.lie, LiarKind::IgnoresCreate | LiarKind::IgnoresBoth)
    }

    fn ignores_replace(&self) -> bool {
        matches!(self.lie, LiarKind::IgnoresReplace | LiarKind::IgnoresBoth)
    }
}

impl Store for Liar {
    fn guarantees(&self) -> Guarantees {
        let mut guarantees = Guarantees::default();
        if self.lie != LiarKind::PromisesNothing {
            guarantees.atomic_create = true;
            guarantees.atomic_replace = true;
            guarantees.linearizable_reads = true;
            guarantees.keeps_acknowledged = true;
            guarantees.unique_versions = true;
            guarantees.reach = Reach::Network;
            guarantees.write_interval = std::time::Duration::ZERO;
            guarantees.value_max = usize::MAX;
        }
        guarantees
    }

    fn get<'a>(&'a self, _: &'a Key) -> StoreFuture<'a, Reading> {
        let entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let entry = entry.map(|(value, number)| Entry::new(value, self.version(number)));
        Box::pin(std::future::ready(Ok(Reading::new(entry))))
    }

    fn write<'a>(&'a self, _: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(std::future::ready(Ok(self.apply(write.value, &write.expect))))
    }

    fn list<'a>(&'a self, _: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        Box::pin(stream::empty())
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new("impossible"))
    }
}

impl fmt::Display for Liar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("liar:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lying_store_is_refused_and_an_honest_one_is_not() {
        let mut rng = Rng::new(1);
        for lie in LiarKind::ALL {
            assert!(refuses(*lie, &mut rng), "{lie:?}");
        }
        assert!(!refuses_honest(&mut rng));
    }
}
