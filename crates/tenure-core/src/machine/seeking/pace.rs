use std::time::Duration;

use super::Context;
use crate::Instant;
use crate::machine::Patience;
use crate::machine::rules::part_by_chance;
use crate::record::{Nonce, Record};

/// Pace of a contender's reads after hints.
///
/// All waiting contenders get a hint at the same moment, and only one of them can be granted. A contender that is
/// repeatedly too late is one of many: it reads at a random moment of a growing interval, so that most contenders find
/// the key taken and save the store a write.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// True if a hint came during a read, which may have missed the change.
    pub(super) overtaken: bool,
    /// Nonce of the record that this contender waits for.
    nonce: Option<Nonce>,
    /// Term that this contender waits for.
    term: Option<Nonce>,
    /// True if a hint caused the latest read.
    hinted: bool,
    /// Number of hints in a row without a change.
    in_vain: u32,
    /// Number of recent times that another contender was faster.
    crowd: u32,
}

impl Pace {
    pub(super) fn others_were_faster(&mut self) {
        self.crowd = (self.crowd + 1).min(CROWD_MAX);
    }

    /// The key was found free.
    pub(super) fn found_free(&mut self) {
        self.crowd = self.crowd.saturating_sub(1);
    }

    /// Delay of the read after a record has run out. One of many contenders reads at a random moment after it; on a network,
    /// where a call takes longer, within the longest duration of a call.
    pub(super) fn spread_after_run_out(&self, ctx: &Context<'_>) -> Duration {
        self.spread(ctx, Duration::ZERO)
    }

    /// Delay of the read after the witness has shown the death of the holder. All waiting contenders of the machine learn of
    /// it at the same moment, and only one of them can be granted. On a network, where refused writes cost money, they
    /// spread even if this one does not know yet that there are others.
    pub(super) fn spread_after_death(&self, ctx: &Context<'_>) -> Duration {
        let least = if is_remote(ctx) { ctx.params.timing.timeout() / 8 } else { Duration::ZERO };
        self.spread(ctx, least)
    }

    fn spread(&self, ctx: &Context<'_>, least: Duration) -> Duration {
        if ctx.params.patience == Patience::Once {
            return Duration::ZERO;
        }
        let timeout = ctx.params.timing.timeout();
        let step = if is_remote(ctx) { timeout / (2u32.pow(CROWD_MAX) - 1) } else { CROWD_PAUSE };
        let interval = (step * (2u32.pow(self.crowd) - 1)).clamp(least, timeout);
        part_by_chance(interval, ctx.ambient.jitter)
    }

    /// True if other contenders were faster recently.
    pub(super) fn is_in_crowd(&self) -> bool {
        self.crowd > 0
    }

    /// A read showed that this contender must wait for this record. True if a hint caused the read.
    pub(super) fn waits_for(&mut self, record: &Record) -> bool {
        let hinted = std::mem::take(&mut self.hinted);
        if self.term.replace(record.term).is_some_and(|term| term != record.term) {
            self.others_were_faster();
        }
        if self.nonce.replace(record.nonce) != Some(record.nonce) {
            self.in_vain = 0;
        } else if hinted {
            self.in_vain = self.in_vain.saturating_add(1);
        }
        hinted
    }

    /// Time of the read after a hint: a pause after the last read, which grows with each hint without a change. `None`
    /// if a hint has caused a read already.
    pub(super) fn look_soon(&mut self, ctx: &Context<'_>, looked: Instant) -> Option<Instant> {
        if std::mem::replace(&mut self.hinted, true) {
            return None;
        }
        let longest = ctx.params.timing.retry();
        let growing = match self.in_vain {
            0 => Duration::ZERO,
            count => VAIN_PAUSE * 8u32.pow(count.min(8) - 1),
        };
        let crowd = (CROWD_PAUSE * (2u32.pow(self.crowd) - 1)).min(longest);
        let after_look = looked + growing.min(longest).max(ctx.params.hint_pause);
        Some(after_look.max(ctx.ambient.now + part_by_chance(crowd, ctx.ambient.jitter)))
    }
}

/// True if a call takes long enough that other contenders may be faster during it.
pub(super) fn is_remote(ctx: &Context<'_>) -> bool {
    !ctx.params.hint_pause.is_zero()
}

/// Doubled each time that another contender was faster.
const CROWD_PAUSE: Duration = Duration::from_millis(1);

/// A read comes after 63 ms at most.
const CROWD_MAX: u32 = 6;

/// After the first hint without a change; then eight times as long for each.
const VAIN_PAUSE: Duration = Duration::from_millis(8);
