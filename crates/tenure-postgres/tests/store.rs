//! The store on real servers: its cost, its settings, its rights, and servers that cannot be used.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

#[path = "store/connecting.rs"]
mod connecting;
mod database;
#[path = "store/failover.rs"]
mod failover;
#[path = "store/fence.rs"]
mod fence;
#[path = "store/grant_races.rs"]
mod grant_races;
#[path = "store/limits.rs"]
mod limits;
#[path = "store/outages.rs"]
mod outages;
#[path = "store/pooler.rs"]
mod pooler;
#[path = "store/rights.rs"]
mod rights;
#[path = "store/round_trips.rs"]
mod round_trips;
#[path = "store/search_path.rs"]
mod search_path;
#[path = "store/settings.rs"]
mod settings;

use tenure_postgres::Postgres;
use tenure_store::{Expect, Key, Purpose, Put, Store, StoreError, Version, Write};

/// Creates an entry, and returns its version.
pub(crate) async fn create(store: &Postgres, key: &Key) -> Version {
    applied(store.put(key, "first".into(), Expect::Absent).await)
}

/// A key that a sweep may remove.
pub(crate) fn scratch_key() -> Key {
    Key::from_stored(".tenure/probe/1").unwrap()
}

/// Replaces an entry for a purpose.
pub(crate) async fn replace(
    store: &Postgres,
    key: &Key,
    version: &Version,
    purpose: Purpose,
) -> Result<Put, StoreError> {
    store.write(key, Write::new("next", Expect::Version(version.clone())).for_purpose(purpose)).await
}

#[track_caller]
pub(crate) fn applied(put: Result<Put, StoreError>) -> Version {
    match put {
        Ok(Put::Applied(applied)) => applied.version,
        other => panic!("{other:?}"),
    }
}

/// The sentence of a refused call.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(error @ StoreError::Refused(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}
