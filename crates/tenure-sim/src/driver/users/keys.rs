//! Users of plain keys.

use std::time::Duration;

use tenure::{Coordinator, Creation, Error, Holder, Keys, Replacement, Revision};
use tenure_core::Token;
use tenure_core::keys::KeyOperation;
use tenure_core::record::Ttl;
use tenure_store::{Key, Prefix};

use super::User;
use super::alone::Alone;
use crate::driver::oracle::ShownEntry;
use crate::driver::world::world;
use crate::driver::{PublicFuture, Reached};
use crate::time::{MILLI, SECOND};

impl User {
    /// Some operations on one key. All users of a process are one owner.
    pub(super) async fn entry(&self, id: u64, coordinator: &Coordinator) {
        let key = {
            let world = world();
            let entries = &world.plan.entries;
            entries[world.draw(|rng| rng.index(entries.len()))].clone()
        };
        let name = format!("process-{}", self.process);
        let Ok(holder) = Holder::new(&name) else { return };
        let keys = coordinator.keys().owner(holder, name);
        let mut revision = Revision::ABSENT;
        for _ in 0..world().draw(|rng| rng.between(1, 5)) {
            let shown = match world().draw(|rng| rng.below(20)) {
                0..5 => self.create(id, &keys, &key).await,
                5..10 => self.change(id, &keys, &key, revision).await,
                10..13 => self.get(id, &keys, &key).await,
                13 => {
                    let everything = Prefix::default();
                    let listing = self.maybe_dropped(PublicFuture::KeyList, keys.list(&everything));
                    self.within(20 * SECOND, listing).await;
                    None
                }
                kind => self.renew_or_release(id, &keys, &key, kind < 17).await,
            };
            if let Some(
                ShownEntry::Created(it)
                | ShownEntry::Updated(it)
                | ShownEntry::Found(Some(it))
                | ShownEntry::Conflict(Some(it)),
            ) = shown
                && world().chance(900)
            {
                revision = it.revision;
            }
            self.sleep(world().draw(|rng| rng.skewed(0, self.ttl_most() / 2))).await;
        }
    }

    async fn create(&self, id: u64, keys: &Keys, key: &Key) -> Option<ShownEntry> {
        let (operation, value, ttl) = self.begin_change(id, key, Revision::ABSENT);
        let waits = world().chance(200);
        let keys = if waits { keys.clone().waiting(Duration::from_secs(3)) } else { keys.clone() };
        let create = keys.create_if_absent(key.as_str(), &value, ttl);
        let created = self.call(PublicFuture::KeyCreate, OPERATION_MAX, create).await;
        self.answered(operation, key, created, |creation| match creation {
            Creation::Created(entry) => ShownEntry::Created(entry),
            Creation::Exists(entry) => ShownEntry::Conflict(Some(entry)),
        })
    }

    async fn change(&self, id: u64, keys: &Keys, key: &Key, revision: Revision) -> Option<ShownEntry> {
        let (operation, value, ttl) = self.begin_change(id, key, revision);
        let change = keys.compare_and_set(key.as_str(), revision, &value, ttl);
        let changed = self.call(PublicFuture::KeySet, OPERATION_MAX, change).await;
        self.answered(operation, key, changed, |replacement| match replacement {
            Replacement::Created(entry) => ShownEntry::Created(entry),
            Replacement::Updated(entry) => ShownEntry::Updated(entry),
            Replacement::Conflict(entry) => ShownEntry::Conflict(entry),
        })
    }

    async fn get(&self, id: u64, keys: &Keys, key: &Key) -> Option<ShownEntry> {
        let operation = world().begin_operation(self.process, id, key, KeyOperation::Get);
        let found = self.call(PublicFuture::KeyGet, OPERATION_MAX, keys.get(key.as_str())).await;
        self.answered(operation, key, found, ShownEntry::Found)
    }

    /// Renews or releases the entry, unless another user of this process does so.
    async fn renew_or_release(&self, id: u64, keys: &Keys, key: &Key, renews: bool) -> Option<ShownEntry> {
        let _alone = Alone::with(self.process, key)?;
        if renews {
            let operation = world().begin_operation(self.process, id, key, KeyOperation::Renew);
            let renewed = self.call(PublicFuture::KeyRenew, OPERATION_MAX, keys.renew(key.as_str())).await;
            self.answered(operation, key, renewed, ShownEntry::Renewed)
        } else {
            let operation = world().begin_operation(self.process, id, key, KeyOperation::Release);
            let released =
                self.call(PublicFuture::KeyRelease, OPERATION_MAX, keys.release(key.as_str())).await;
            self.answered(operation, key, released, |()| ShownEntry::Released)
        }
    }

    /// Draws a change of a key: its number, its own value, and its ttl.
    fn begin_change(&self, id: u64, key: &Key, revision: Revision) -> (usize, String, Option<Duration>) {
        let value = format!("change-{:x}", world().draw(|rng| rng.next()));
        let ttl = world().draw(|rng| (!rng.chance(200)).then(|| rng.between(1_000, 6_000)));
        let ttl = ttl.and_then(Ttl::from_millis);
        let token = Token::new(revision.get()).unwrap_or(Token::ZERO);
        let set = KeyOperation::Set { revision: token, value: value.as_str().into(), ttl };
        (world().begin_operation(self.process, id, key, set), value, ttl.map(Ttl::as_duration))
    }

    /// Judges the answer to an operation, unless the operation was dropped or failed.
    fn answered<T>(
        &self,
        operation: usize,
        key: &Key,
        answer: Option<Result<T, Error>>,
        shown: impl FnOnce(T) -> ShownEntry,
    ) -> Option<ShownEntry> {
        let shown = match answer? {
            Ok(answer) => shown(answer),
            Err(error) => {
                self.note(32, format_args!("fails on {key}: {error}"));
                return None;
            }
        };
        world().judge_shown(operation, &shown);
        world().reach(match &shown {
            ShownEntry::Created(_) => Reached::EntryCreated,
            ShownEntry::Updated(_) => Reached::EntryUpdated,
            ShownEntry::Renewed(_) => Reached::EntryRenewed,
            ShownEntry::Released => Reached::EntryReleased,
            ShownEntry::Conflict(_) => Reached::EntryConflict,
            ShownEntry::Found(_) => Reached::EntryFound,
        });
        Some(shown)
    }
}

/// Longest time of an operation: the limit of the driver, one call, 3 s of waiting, and 2 s.
const OPERATION_MAX: u64 = 25 * SECOND + 200 * MILLI;
