use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use tenure::clock::WallTime;
use tenure_store::{Key, Reason, Refused, StoreError};

use crate::scratch_area::{ScratchArea, ScratchName};

/// What became of everything that a probe wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanUp {
    /// How many entries of this probe were removed.
    pub removed: usize,
    /// How many are left, at most.
    pub left: usize,
    /// Why they are left.
    pub why: Option<String>,
    /// What the names of all of them begin with.
    pub scratch_area: String,
    /// How many entries were removed that a probe of an earlier day had left, because it was killed.
    pub older: usize,
}

/// Sweeps everything that was written, and what is found beside it, and then looks again: a write that was on its way
/// when the probe was broken off may have come meanwhile.
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
            // What was written is known without a listing.
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

/// The entries of this probe, and those of probes that must be over.
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

/// Whether to go on: `false` where nothing can be removed.
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

/// The second look finds what came late, the third nothing.
const LOOKS: usize = 3;

/// A probe takes minutes. One of an earlier day is over, by whichever clock.
const OLD_SECONDS: u64 = 24 * 60 * 60;

/// Sweeps that are under way at once.
const SWEEPS_AT_ONCE: usize = 8;
