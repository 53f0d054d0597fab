use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::PublicFuture;
use crate::report::grouped;

/// Counts of the futures that users dropped, by the number of polls before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    futures: BTreeMap<PublicFuture, FutureDrops>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FutureDrops {
    /// Drops after 0, 1, 2, … polls. The last number is that of all drops after more.
    after: [u64; POLLS_SHOWN],
    /// Most polls of one future, also of one that resolved.
    most: u32,
}

impl Drops {
    /// A future had this number of polls, and then resolved or was dropped.
    pub(super) fn count(&mut self, what: PublicFuture, polls: u32, dropped: bool) {
        let counts = self.futures.entry(what).or_default();
        counts.most = counts.most.max(polls);
        if dropped {
            counts.after[(polls as usize).min(POLLS_SHOWN - 1)] += 1;
        }
    }

    /// Adds the counts of another seed.
    pub(super) fn add(&mut self, other: &Self) {
        for (what, counts) in &other.futures {
            let mine = self.futures.entry(*what).or_default();
            mine.most = mine.most.max(counts.most);
            for (mine, theirs) in mine.after.iter_mut().zip(counts.after) {
                *mine += theirs;
            }
        }
    }

    /// The futures that were not dropped after one poll, or not after more, in words.
    pub(super) fn below_quota(&self, seeds: u64) -> Vec<String> {
        let missed = PublicFuture::ALL.iter().flat_map(|what| {
            let after = self.futures.get(what).map(|counts| counts.after).unwrap_or_default();
            let (once, more, wanted) =
                (after[1], after[2..].iter().sum::<u64>(), what.quota() * seeds / 1000);
            [(once, "one poll"), (more, "more polls")].map(|(count, polls)| {
                let words = what.words();
                (count < wanted)
                    .then(|| format!("{words} dropped after {polls}: {count}, expected at least {wanted}"))
            })
        });
        missed.flatten().collect()
    }

    /// One line for each future.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        for what in PublicFuture::ALL {
            let FutureDrops { after, most } = self.futures.get(what).cloned().unwrap_or_default();
            let after: Vec<_> = after.iter().map(|count| format!("{:>7}", grouped(*count))).collect();
            let _ = writeln!(text, "  {} {most:>8}  {}", after.join(" "), what.words());
        }
        text
    }
}

/// Number of polls from which on drops are counted together.
pub(super) const POLLS_SHOWN: usize = 9;
