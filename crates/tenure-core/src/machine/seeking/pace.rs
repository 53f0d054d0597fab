use std::time::Duration;

use super::Context;
use crate::Instant;
use crate::machine::rules::part_by_chance;
use crate::record::{Nonce, Record};

/// The pace of a contender's looks after hints.
///
/// Everybody who waits gets the hint at one moment, and only one of them can be granted. Whoever finds others faster
/// again and again is one of many: it takes its look at a random moment of a longer and longer time, so that most of
/// them find the key taken and spare the store a write.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Whether a hint came while a look was under way, which may have missed what it hints at.
    pub(super) overtaken: bool,
    /// The nonce of the record that is waited for.
    nonce: Option<Nonce>,
    /// The term that is waited for.
    term: Option<Nonce>,
    /// Whether the latest look was made because of a hint.
    hinted: bool,
    /// How many hints in a row hinted at nothing.
    in_vain: u32,
    /// How often others were faster of late.
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

    /// A look showed that this record is to be waited for.
    pub(super) fn waits_for(&mut self, record: &Record) {
        let hinted = std::mem::take(&mut self.hinted);
        if self.term.replace(record.term).is_some_and(|term| term != record.term) {
            self.others_were_faster();
        }
        if self.nonce.replace(record.nonce) != Some(record.nonce) {
            self.in_vain = 0;
        } else if hinted {
            self.in_vain = self.in_vain.saturating_add(1);
        }
    }

    /// When to look again because of a hint: after a pause since the last look, and a longer one the more hints were in
    /// vain. `None` if a hint has made it look already.
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

/// Doubled for each time that others were faster.
const CROWD_PAUSE: Duration = Duration::from_millis(1);

/// So that a look comes after 63 ms at most.
const CROWD_MAX: u32 = 6;

/// After the first hint in vain; then eight times as long for each.
const VAIN_PAUSE: Duration = Duration::from_millis(8);
