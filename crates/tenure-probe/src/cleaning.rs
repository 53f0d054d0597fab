use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use tenure::clock::WallTime;
use tenure_store::{Key, Reason, Refused, StoreError};

use crate::scratch_area::{ScratchArea, ScratchName};

/// Result of the removal of everything that a probe wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanUp {
    /// Number of entries of this probe that were removed.
    pub removed: usize,
    /// Maximum number of entries of this probe that remain.
    pub left: usize,
    /// Reason why they remain.
    pub why: Option<String>,
    /// Prefix of the names of all entries of this probe.
    pub scratch_area: String,
    /// Number of removed entries that a killed probe of an earlier day had left.
    pub older: usize,
}

/// Removes everything that was written, and everything found in the same area, and then lists again: a write that was
/// in flight when the probe was interrupted may have arrived since.
pub(crate) async fn clean(
    scratch_area: &ScratchArea,
    scratch_name: &ScratchName,
    written: BTreeSet<Key>,
    now: WallTime,
    done: &mut CleanUp,
) {
    done.left = written.len();
    let mut left = written;
    for look in 0..LOOKS {
        let listed = scratch_area.list_stored().await;
        let (own, old) = match listed {
            Ok(keys) => own_and_old(keys, scratch_name, now),
            // The ledger knows the written keys without a listing.
            Err(_) => (BTreeSet::new(), BTreeSet::new()),
        };
        if look == 0 {
            left.extend(own);
        } else {
            left = own;
        }
        if left.is_empty() && old.is_empty() {
            break;
        }
        done.left = left.len();
        if !sweep(scratch_area, left.iter().cloned(), done, |done| {
            done.removed += 1;
            done.left -= 1;
        })
        .await
        {
            break;
        }
        left.clear();
        if !sweep(scratch_area, old, done, |done| done.older += 1).await {
            break;
        }
    }
}

/// The entries of this probe, and those of probes that must have ended.
fn own_and_old(keys: Vec<Key>, scratch_name: &ScratchName, now: WallTime) -> (BTreeSet<Key>, BTreeSet<Key>) {
    let (mut own, mut old) = (BTreeSet::new(), BTreeSet::new());
    for key in keys {
        match ScratchName::of(&key) {
            Some((found, _)) if found == *scratch_name => own.insert(key),
            Some((_, second)) if second.saturating_add(OLD_SECONDS) < now.as_millis() / 1_000 => {
                old.insert(key)
            }
            _ => continue,
        };
    }
    (own, old)
}

/// Removes the entries. Returns `false` if nothing can be removed, so that the caller stops.
async fn sweep(
    scratch_area: &ScratchArea,
    keys: impl IntoIterator<Item = Key>,
    done: &mut CleanUp,
    mut removed: impl FnMut(&mut CleanUp),
) -> bool {
    let sweeps = stream::iter(keys).map(async |key| scratch_area.sweep_stored(&key).await);
    let mut sweeps = std::pin::pin!(sweeps.buffer_unordered(SWEEPS_AT_ONCE));
    while let Some(swept) = sweeps.next().await {
        match swept {
            Ok(()) => removed(done),
            Err(error) => {
                let hopeless = matches!(
                    &error,
                    StoreError::Refused(Refused { reason: Reason::Denied | Reason::Unsupported, .. })
                );
                done.why = Some(error.to_string());
                if hopeless {
                    return false;
                }
            }
        }
    }
    true
}

/// The second pass finds late arrivals, the third finds nothing.
const LOOKS: usize = 3;

/// A probe takes minutes. A probe of an earlier day has ended, by any clock.
const OLD_SECONDS: u64 = 24 * 60 * 60;

/// Maximum number of removals in flight.
const SWEEPS_AT_ONCE: usize = 8;
