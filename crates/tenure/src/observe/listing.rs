use std::time::Duration;

use futures_util::StreamExt;
use tenure_store::{Key, Prefix, Store};

use crate::Error;
use crate::clock::{Clock, call_timeout};

/// All keys but the reserved ones, in order.
pub(crate) async fn keys(
    clock: &dyn Clock,
    store: &dyn Store,
    name: &str,
    prefix: &Prefix,
) -> Result<Vec<Key>, Error> {
    let mut keys = all_keys(clock, store, name, prefix).await?;
    keys.retain(|key| !key.is_reserved());
    keys.sort();
    Ok(keys)
}

/// The keys of groups of slots, in any order.
pub(crate) async fn slot_keys(
    clock: &dyn Clock,
    store: &dyn Store,
    name: &str,
    prefix: &Prefix,
) -> Result<Vec<Key>, Error> {
    let mut keys = all_keys(clock, store, name, prefix).await?;
    keys.retain(Key::is_of_slots);
    Ok(keys)
}

async fn all_keys(
    clock: &dyn Clock,
    store: &dyn Store,
    name: &str,
    prefix: &Prefix,
) -> Result<Vec<Key>, Error> {
    let mut listing = store.list(prefix);
    let mut keys = Vec::new();
    loop {
        let next = async { Ok(listing.next().await) };
        let Some(key) = call_timeout(clock, LIST_STEP_MAX, "listing the leases", next).await? else { break };
        let key = key.map_err(|error| {
            Error::new(
                (&error).into(),
                match prefix.as_str() {
                    "" => format!("the leases on {name} could not be listed: {error}"),
                    prefix => format!("the leases under {prefix} on {name} could not be listed: {error}"),
                },
            )
            .because(error)
        })?;
        keys.push(key);
    }
    Ok(keys)
}

/// Longest wait for the next key of a listing. The listing as a whole has no limit.
const LIST_STEP_MAX: Duration = Duration::from_secs(60);
