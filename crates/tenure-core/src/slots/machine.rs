use std::time::Duration;

use super::allowance::Allowance;
use super::{
    GroupListing, GroupSize, SizeAnswer, SlotEffect, SlotEvent, SlotHolder, SlotInput, SlotMemory,
    SlotParams, SlotRules, SlotSight, Stamped,
};
use crate::Instant;
use crate::machine::rules::part_by_chance;
use crate::machine::{Patience, Standard};
use crate::record::Ttl;

/// One contender for any slot of a group, from the request to the release.
///
/// The machine performs no I/O. [`step`](Self::step) takes a [`SlotInput`] and appends [`SlotEffect`]s.
#[derive(Debug)]
pub struct SlotMachine {
    rules: &'static dyn SlotRules,
    params: SlotParams,
    stage: SlotStage,
    slots: Vec<SlotMemory>,
    /// The slot that was tried first. Reads follow in the order of the indexes.
    start: u16,
    /// True once the group was seen with the expected size.
    agreed: bool,
    listens: bool,
    /// Time of the next poll of a full group.
    next_poll: Option<Instant>,
    /// Number of polls since the size was read.
    polls: usize,
    /// The calls that a contender may make that lists the group.
    allowance: Allowance,
    /// Time of the next listing.
    next_listing: Option<Instant>,
    /// Time of the next read without a suspicion, which would find what listings miss.
    next_check: Option<Instant>,
    /// The size of the group in the listings.
    stamped_size: Option<Stamped>,
    /// True if the listings showed that the size may have changed.
    size_changed: bool,
    /// Number of failed listings in a row.
    failed_listings: u32,
    /// Number of failed calls in a row, and the time until which the store gets a pause.
    failures: u32,
    paused_until: Option<Instant>,
    /// Number of recent times that another contender was faster.
    crowd: u32,
    asleep_until: Option<Instant>,
}

/// Stage of a contender.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SlotStage {
    New,
    /// The size of the group is being read or created.
    Sizing,
    /// No call is pending.
    Idle,
    /// The group is being listed.
    Listing,
    /// These slots are being read.
    Reading(Vec<u16>),
    /// This slot is being tried or waited for.
    Trying(u16),
    /// This slot was granted, and the size is being read.
    Proving {
        index: u16,
        granted: Instant,
    },
    /// As [`Proving`](Self::Proving), with a pause after a failed read of the size.
    ProvingLater {
        index: u16,
        granted: Instant,
    },
    Holding(u16),
    Ended,
}

/// The world at the moment of an input.
struct Turn<'a> {
    now: Instant,
    jitter: u32,
    effects: &'a mut Vec<SlotEffect>,
}

impl SlotMachine {
    /// A contender with these parameters. It does nothing before [`SlotInput::Start`].
    pub fn new(params: SlotParams) -> Self {
        Self::with_rules(params, &Standard)
    }

    /// A contender under other rules, for the simulation.
    pub fn with_rules(params: SlotParams, rules: &'static dyn SlotRules) -> Self {
        let slots = (0..=GroupSize::MAX.get()).take_while(|index| rules.is_within(*index, params.size));
        Self {
            slots: slots.map(|_| SlotMemory::default()).collect(),
            rules,
            params,
            stage: SlotStage::New,
            start: 0,
            agreed: false,
            listens: false,
            next_poll: None,
            polls: 0,
            allowance: Allowance::default(),
            next_listing: None,
            next_check: None,
            stamped_size: None,
            size_changed: false,
            failed_listings: 0,
            failures: 0,
            paused_until: None,
            crowd: 0,
            asleep_until: None,
        }
    }

    /// Handles an input and appends the resulting effects. `jitter` is a uniform random number.
    pub fn step(&mut self, now: Instant, jitter: u32, input: SlotInput, effects: &mut Vec<SlotEffect>) {
        let turn = &mut Turn { now, jitter, effects };
        if matches!(input, SlotInput::Wake) {
            self.asleep_until = None;
        }
        self.take(turn, input);
        let wake = self.wakes_at();
        if let Some(at) = wake
            && self.asleep_until != wake
        {
            self.asleep_until = wake;
            turn.effects.push(SlotEffect::SleepUntil(at));
        }
    }

    /// True if the machine has ended: it requests nothing.
    pub fn is_ended(&self) -> bool {
        self.stage == SlotStage::Ended
    }

    /// The slot that is held and believed in.
    pub fn held(&self) -> Option<u16> {
        match self.stage {
            SlotStage::Holding(index) => Some(index),
            _ => None,
        }
    }

    fn take(&mut self, turn: &mut Turn<'_>, input: SlotInput) {
        match (&mut self.stage, input) {
            (SlotStage::New, SlotInput::Start) => {
                self.start = self.rules.first_slot(self.slots.len() as u16, turn.jitter);
                self.read_size(turn);
            }
            (SlotStage::Ended, _) => {}
            (_, SlotInput::Release) => self.release(turn),
            (_, SlotInput::Hinted { index }) => self.hinted(turn, index),
            (SlotStage::Sizing, SlotInput::Size { answer, .. }) => self.sized(turn, answer),
            (SlotStage::Trying(tried), SlotInput::Granted { index }) if *tried == index => {
                self.granted(turn, index);
            }
            (SlotStage::Trying(tried), SlotInput::Denied { index }) if *tried == index => {
                self.denied(turn, index)
            }
            (SlotStage::Trying(tried), SlotInput::Seen { index, sight }) if *tried == index => {
                self.note_race(index);
                self.remember(turn, index, sight);
                self.allowance.spend(turn.now, self.poll_pause(0));
                self.seek(turn);
            }
            (SlotStage::Trying(tried), SlotInput::Failed { index }) if *tried == index => {
                self.slots[usize::from(index)] = SlotMemory::default();
                self.failed(turn);
            }
            (SlotStage::Reading(pending), SlotInput::Seen { index, sight }) if pending.contains(&index) => {
                pending.retain(|other| *other != index);
                let is_last = pending.is_empty();
                self.failures = 0;
                self.remember(turn, index, sight);
                if is_last {
                    self.seek(turn);
                }
            }
            (SlotStage::Reading(pending), SlotInput::Failed { index }) if pending.contains(&index) => {
                pending.retain(|other| *other != index);
                let is_last = pending.is_empty();
                self.not_read(turn, index);
                if is_last && !self.is_ended() {
                    self.seek(turn);
                }
            }
            (SlotStage::Listing, SlotInput::Listed { sent, listing }) => {
                self.listed(turn, sent, listing);
                self.seek(turn);
            }
            (SlotStage::Listing, SlotInput::NotListed) => {
                self.failed_listings += 1;
                self.seek(turn);
            }
            (SlotStage::Proving { index, granted }, SlotInput::Size { sent, answer }) => {
                let (index, granted) = (*index, *granted);
                self.prove(turn, index, granted, sent, answer);
            }
            (SlotStage::Proving { index, .. } | SlotStage::ProvingLater { index, .. }, SlotInput::Lost) => {
                let index = *index;
                self.slots[usize::from(index)] = SlotMemory::default();
                self.seek(turn);
            }
            (SlotStage::Holding(index), SlotInput::Size { answer: SizeAnswer::Is(size), .. }) => {
                let index = *index;
                if !self.rules.keeps_after_resize(index, size) {
                    self.release(turn);
                }
            }
            (SlotStage::ProvingLater { index, granted }, SlotInput::Wake) => {
                let (index, granted) = (*index, *granted);
                if self.is_out_of_patience(turn) {
                    return self.give_up(turn);
                }
                if self.paused_until.is_none_or(|until| until <= turn.now) {
                    self.stage = SlotStage::Proving { index, granted };
                    turn.effects.push(SlotEffect::ReadSize);
                }
            }
            (SlotStage::Idle, SlotInput::Wake) => self.seek(turn),
            // A late wake, or the answer to a call that this stage did not send.
            _ => {}
        }
    }

    // ── the size ──────────────────────────────────────────────────────────────────────────────────────────────────

    fn read_size(&mut self, turn: &mut Turn<'_>) {
        self.stage = SlotStage::Sizing;
        self.polls = 0;
        self.size_changed = false;
        // A listing is tried again.
        self.failed_listings = self.failed_listings.min(FAILED_LISTINGS_MAX - 1);
        turn.effects.push(SlotEffect::ReadSize);
    }

    fn create_size(&mut self, turn: &mut Turn<'_>) {
        self.stage = SlotStage::Sizing;
        turn.effects.push(SlotEffect::CreateSize(self.params.size));
    }

    fn sized(&mut self, turn: &mut Turn<'_>, answer: SizeAnswer) {
        match answer {
            SizeAnswer::Absent => self.create_size(turn),
            SizeAnswer::Is(stored) if !self.rules.size_agrees(self.params.size, stored) => {
                self.refuse(turn, stored);
            }
            SizeAnswer::Is(_) => {
                self.failures = 0;
                self.agreed = true;
                self.seek(turn);
            }
            SizeAnswer::Unknown => self.failed(turn),
        }
    }

    fn granted(&mut self, turn: &mut Turn<'_>, index: u16) {
        self.crowd = self.crowd.saturating_sub(1);
        if self.rules.believes_earlier_size() {
            return self.believe(turn, index);
        }
        self.stage = SlotStage::Proving { index, granted: turn.now };
        turn.effects.push(SlotEffect::ReadSize);
    }

    fn believe(&mut self, turn: &mut Turn<'_>, index: u16) {
        self.stage = SlotStage::Holding(index);
        turn.effects.push(SlotEffect::Tell(SlotEvent::Believe { index }));
    }

    /// Believes in a granted slot if the group still has its size, by a read that was sent after the grant.
    fn prove(
        &mut self,
        turn: &mut Turn<'_>,
        index: u16,
        granted: Instant,
        sent: Instant,
        answer: SizeAnswer,
    ) {
        match answer {
            SizeAnswer::Is(stored) if !self.rules.size_agrees(self.params.size, stored) => {
                turn.effects.push(SlotEffect::Release(index));
                self.refuse(turn, stored);
            }
            SizeAnswer::Is(_) if !self.rules.proves_size(granted, sent) => {
                turn.effects.push(SlotEffect::ReadSize);
            }
            SizeAnswer::Is(_) => self.believe(turn, index),
            // The size was deleted from outside. The next contender may create another one.
            SizeAnswer::Absent => {
                turn.effects.push(SlotEffect::Release(index));
                self.slots[usize::from(index)] = SlotMemory::default();
                self.create_size(turn);
            }
            SizeAnswer::Unknown if self.params.patience == Patience::Once => self.give_up(turn),
            SizeAnswer::Unknown => {
                self.pause(turn);
                self.stage = SlotStage::ProvingLater { index, granted };
            }
        }
    }

    fn refuse(&mut self, turn: &mut Turn<'_>, stored: GroupSize) {
        let (own, resized) = (self.params.size, self.agreed);
        self.end(turn, SlotEvent::Refused { own, stored, resized });
    }

    // ── the slots ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// Takes the next step towards a slot. No call is pending.
    fn seek(&mut self, turn: &mut Turn<'_>) {
        self.stage = SlotStage::Idle;
        if self.is_out_of_patience(turn) {
            return self.give_up(turn);
        }
        if self.paused_until.is_some_and(|until| until > turn.now) {
            return;
        }
        self.paused_until = None;
        if !self.agreed {
            return self.read_size(turn);
        }
        if self.slots.iter().all(|slot| slot.read_at.is_none() && slot.denied_at.is_none()) {
            return self.try_slot(turn, self.start);
        }
        if let Some(index) = self.in_order().find(|index| self.may_be_tried(turn, *index)) {
            return self.try_slot(turn, index);
        }
        let unread = self.in_order().filter(|index| {
            let slot = &self.slots[usize::from(*index)];
            slot.sight.is_none() || slot.hinted.is_some_and(|at| at <= turn.now)
        });
        let unread: Vec<_> = unread.take(READS_AT_ONCE).collect();
        if !unread.is_empty() {
            return self.read(turn, unread);
        }
        match self.params.patience {
            Patience::Once => self.give_up(turn),
            // No wait changes that. Only an operator does.
            _ if self.slots.iter().all(SlotMemory::is_unusable) => self.give_up(turn),
            Patience::Until(_) | Patience::Forever if self.slots.len() == 1 => self.wait_for_lease(turn),
            Patience::Until(_) | Patience::Forever => self.poll(turn),
        }
    }

    /// The indexes of all slots, from the one that was tried first.
    fn in_order(&self) -> impl Iterator<Item = u16> + use<> {
        let (start, slots) = (self.start, self.slots.len() as u16);
        (start..slots).chain(0..start)
    }

    fn may_be_tried(&self, turn: &Turn<'_>, index: u16) -> bool {
        let slot = &self.slots[usize::from(index)];
        let again = |denied| {
            self.params.patience != Patience::Once
                && self.rules.may_try_again(turn.now, denied, self.ttl_of_records())
        };
        slot.is_free() && slot.denied_at.is_none_or(again)
    }

    fn try_slot(&mut self, turn: &mut Turn<'_>, index: u16) {
        self.stage = SlotStage::Trying(index);
        self.slots[usize::from(index)].sent_at = Some(turn.now);
        turn.effects.push(SlotEffect::Try(index));
    }

    fn read(&mut self, turn: &mut Turn<'_>, indexes: Vec<u16>) {
        if !self.listens && self.params.patience != Patience::Once && self.slots.len() > 1 {
            self.listens = true;
            turn.effects.push(SlotEffect::Listen);
            // No hint tells of a change since the earlier reads of these slots.
            for slot in self.slots.iter_mut().filter(|slot| slot.sight.is_some()) {
                slot.hinted = Some(turn.now);
            }
        }
        turn.effects.extend(indexes.iter().copied().map(SlotEffect::Read));
        for index in &indexes {
            let slot = &mut self.slots[usize::from(*index)];
            (slot.hinted, slot.sent_at) = (None, Some(turn.now));
        }
        self.stage = SlotStage::Reading(indexes);
    }

    fn remember(&mut self, turn: &Turn<'_>, index: u16, sight: SlotSight) {
        let slot = &mut self.slots[usize::from(index)];
        // A new holder has it: the next time that it looks free, it is tried at once.
        slot.denied_at.take_if(|_| matches!(sight, SlotSight::Held { .. }));
        (slot.sight, slot.read_at) = (Some(sight), Some(turn.now));
    }

    /// Another holder has the slot. Its record is read, unless it is known already.
    fn denied(&mut self, turn: &mut Turn<'_>, index: u16) {
        self.note_race(index);
        let slot = &mut self.slots[usize::from(index)];
        slot.sight.take_if(|sight| !matches!(sight, SlotSight::Held { .. }));
        slot.denied_at = Some(turn.now);
        // The try was a read, too.
        let pause = self.poll_pause(turn.jitter);
        self.next_poll = self.next_poll.map(|next| next.max(turn.now + pause));
        self.allowance.spend(turn.now, pause);
        self.seek(turn);
    }

    /// A slot was not granted. If it looked free, another contender was faster.
    fn note_race(&mut self, index: u16) {
        if self.slots[usize::from(index)].is_free() {
            self.crowd = (self.crowd + 1).min(CROWD_MAX);
        }
    }

    /// A read failed. A slot that was read before is read again in its turn; any other after a pause.
    fn not_read(&mut self, turn: &mut Turn<'_>, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        slot.sent_at = None;
        if slot.sight.is_some() && self.params.patience != Patience::Once {
            slot.read_at = Some(turn.now);
            return;
        }
        match self.params.patience {
            Patience::Once => self.end(turn, SlotEvent::Unavailable),
            Patience::Until(_) | Patience::Forever => self.pause(turn),
        }
    }

    fn hinted(&mut self, turn: &mut Turn<'_>, index: u16) {
        let crowd = part_by_chance(CROWD_PAUSE * (2u32.pow(self.crowd) - 1), turn.jitter);
        let Some(slot) = self.slots.get_mut(usize::from(index)) else { return };
        slot.denied_at = None;
        let after_read = slot.read_at.map_or(turn.now, |read| read + self.params.hint_pause);
        slot.hinted.get_or_insert(after_read.max(turn.now + crowd));
        if self.stage == SlotStage::Idle {
            self.seek(turn);
        }
    }

    // ── a full group ──────────────────────────────────────────────────────────────────────────────────────────────

    fn poll(&mut self, turn: &mut Turn<'_>) {
        let has_listings = self.params.stamps && self.failed_listings < FAILED_LISTINGS_MAX;
        if has_listings && self.rules.lists(self.slots.len() as u16) {
            self.poll_by_listing(turn);
        } else {
            self.poll_in_turn(turn);
        }
    }

    /// Reads one slot, or the size after all slots, once the pause after the latest poll has passed.
    fn poll_in_turn(&mut self, turn: &mut Turn<'_>) {
        let next = *self.next_poll.get_or_insert(turn.now + self.poll_pause(turn.jitter));
        if next > turn.now {
            return;
        }
        self.next_poll = Some(turn.now + self.poll_pause(turn.jitter));
        self.check_next(turn);
    }

    /// Reads the slot whose turn it is, or the size after all slots.
    fn check_next(&mut self, turn: &mut Turn<'_>) {
        if self.polls >= self.slots.len() {
            return self.read_size(turn);
        }
        self.polls += 1;
        match self.rules.next_slot(turn.now, &self.slots, self.poll_pause(0)) {
            Some(index) => self.read(turn, vec![index]),
            None => self.read_size(turn),
        }
    }

    /// Lists the group, and reads the slots that the listings make suspicious. Without any, it reads one slot per two
    /// ttl, so that it finds what the listings do not show.
    fn poll_by_listing(&mut self, turn: &mut Turn<'_>) {
        let (records, pause) = (self.ttl_of_records(), self.poll_pause(0));
        let next_listing = *self.next_listing.get_or_insert(turn.now);
        let next_check = *self.next_check.get_or_insert(turn.now + records.as_duration() * CHECK_TTLS);
        // A check never takes the calls that a suspicion may need.
        let next_check = next_check.max(self.allowance.full_at(turn.now));
        let is_due = |at: Instant| at <= turn.now;
        let suspect = self.suspect(turn.now);
        if !is_due(next_listing) && !is_due(next_check) && !self.size_changed && suspect.is_none() {
            let run_outs = self.slots.iter().filter(|slot| slot.is_read_since_stamped());
            let next_due = run_outs.filter_map(SlotMemory::due).min();
            self.next_poll = [Some(next_listing), Some(next_check), next_due].into_iter().flatten().min();
            return;
        }
        let mut ready = self.allowance.ready_at(turn.now, pause);
        if self.failed_listings > 0 {
            // The calls since the failed listing were paced by themselves.
            ready = self.next_poll.map_or(ready, |next| next.max(ready));
        }
        if !is_due(ready) {
            self.next_poll = Some(ready);
            return;
        }
        self.next_poll = Some(turn.now + pause);
        self.allowance.spend(turn.now, pause);
        if is_due(next_listing) {
            self.next_listing = Some(turn.now + self.rules.list_after(records, turn.jitter));
            self.stage = SlotStage::Listing;
            return turn.effects.push(SlotEffect::List);
        }
        self.next_check = Some(turn.now + records.as_duration() * CHECK_TTLS);
        match suspect {
            _ if self.size_changed => self.read_size(turn),
            Some(index) => self.read(turn, vec![index]),
            None => self.check_next(turn),
        }
    }

    /// The most suspicious slot; among equals, the one that was read least recently.
    fn suspect(&self, now: Instant) -> Option<u16> {
        let records = self.ttl_of_records();
        let suspects = self.in_order().filter_map(|index| {
            let slot = &self.slots[usize::from(index)];
            Some(((self.rules.suspicion(now, slot, records)?, slot.read_at), index))
        });
        suspects.min_by_key(|(urgency, _)| *urgency).map(|(_, index)| index)
    }

    fn listed(&mut self, turn: &Turn<'_>, sent: Instant, listing: GroupListing) {
        self.failed_listings = 0;
        let mut stamps = vec![None; self.slots.len()];
        for (index, stamp) in listing.slots {
            if let Some(place) = stamps.get_mut(usize::from(index)) {
                *place = Some(stamp);
            }
        }
        for (slot, stamp) in self.slots.iter_mut().zip(stamps) {
            let changed = match &mut slot.stamped {
                Some(stamped) => stamped.update(stamp, sent, turn.now),
                None => {
                    slot.stamped = Some(Stamped::new(stamp, sent, turn.now));
                    false
                }
            };
            if changed && self.rules.is_free_by_stamp() {
                slot.sight = Some(SlotSight::Free);
            }
        }
        match &mut self.stamped_size {
            Some(stamped) => self.size_changed |= stamped.update(listing.size, sent, turn.now),
            None => {
                self.stamped_size = Some(Stamped::new(listing.size, sent, turn.now));
                // The first check reads the size again: the latest read was before this listing.
                self.polls = self.slots.len();
            }
        }
    }

    /// Waits for the only slot as for any lease, and reads the size from time to time.
    fn wait_for_lease(&mut self, turn: &mut Turn<'_>) {
        if self.polls > 0 {
            return self.read_size(turn);
        }
        self.polls += 1;
        let until = turn.now + self.ttl_of_records().as_duration() * LEASE_WAIT_TTLS;
        let until = self.limit().map_or(until, |limit| limit.min(until));
        self.stage = SlotStage::Trying(0);
        turn.effects.push(SlotEffect::Wait { index: 0, until });
    }

    fn poll_pause(&self, jitter: u32) -> Duration {
        self.rules.poll_after(self.ttl_of_records(), jitter)
    }

    /// The shortest ttl of the holders.
    fn ttl_of_records(&self) -> Ttl {
        self.slots.iter().filter_map(SlotMemory::ttl).min().unwrap_or(self.params.timing.ttl())
    }

    // ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────

    fn limit(&self) -> Option<Instant> {
        match self.params.patience {
            Patience::Until(limit) => Some(limit),
            Patience::Once | Patience::Forever => None,
        }
    }

    fn is_out_of_patience(&self, turn: &Turn<'_>) -> bool {
        self.limit().is_some_and(|limit| limit <= turn.now)
    }

    /// A call failed: retry after a pause, unless the contender tries only once.
    fn failed(&mut self, turn: &mut Turn<'_>) {
        if self.params.patience == Patience::Once {
            return self.end(turn, SlotEvent::Unavailable);
        }
        self.pause(turn);
        self.seek(turn);
    }

    fn pause(&mut self, turn: &Turn<'_>) {
        let growing = self.params.timing.retry() * 2u32.pow(self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        self.paused_until = Some(turn.now + growing.min(self.poll_pause(turn.jitter)));
    }

    /// Ends without a slot. A slot that was granted is released.
    fn give_up(&mut self, turn: &mut Turn<'_>) {
        if let SlotStage::Proving { index, .. } | SlotStage::ProvingLater { index, .. } = self.stage {
            turn.effects.push(SlotEffect::Release(index));
            return self.end(turn, SlotEvent::Unavailable);
        }
        let is_known = |slot: &SlotMemory| slot.sight.is_some() || slot.denied_at.is_some();
        let is_known = self.agreed && self.slots.iter().all(is_known);
        let event =
            if is_known { SlotEvent::Full { holders: self.holders() } } else { SlotEvent::Unavailable };
        self.end(turn, event);
    }

    fn holders(&self) -> Vec<SlotHolder> {
        let held = (0u16..).zip(&self.slots).filter_map(|(index, slot)| match &slot.sight {
            Some(SlotSight::Held { record, due }) => {
                Some(SlotHolder { index, record: record.clone(), due: *due })
            }
            _ => None,
        });
        held.collect()
    }

    fn release(&mut self, turn: &mut Turn<'_>) {
        if let SlotStage::Proving { index, .. }
        | SlotStage::ProvingLater { index, .. }
        | SlotStage::Holding(index) = self.stage
        {
            turn.effects.push(SlotEffect::Release(index));
        }
        self.stage = SlotStage::Ended;
    }

    fn end(&mut self, turn: &mut Turn<'_>, event: SlotEvent) {
        self.stage = SlotStage::Ended;
        turn.effects.push(SlotEffect::Tell(event));
    }

    fn wakes_at(&self) -> Option<Instant> {
        match self.stage {
            SlotStage::Idle => {
                let hinted = self.slots.iter().filter_map(|slot| slot.hinted).min();
                let polled = [hinted, self.next_poll].into_iter().flatten().min();
                let next = self.paused_until.or(polled);
                [next, self.limit()].into_iter().flatten().min()
            }
            SlotStage::ProvingLater { .. } => [self.paused_until, self.limit()].into_iter().flatten().min(),
            _ => None,
        }
    }
}

/// Maximum number of reads at once of a newcomer, which reads every slot until it finds a free one.
const READS_AT_ONCE: usize = 8;

/// Time between two reads without a suspicion, in ttl.
const CHECK_TTLS: u32 = 2;

/// Number of failed listings in a row after which a contender reads the slots in turn. It tries a listing again after
/// each round.
const FAILED_LISTINGS_MAX: u32 = 3;

/// Time for which a contender waits for the only slot before it reads the size again, in ttl.
const LEASE_WAIT_TTLS: u32 = 4;

/// Longest pause after a hint, doubled each time that another contender was faster.
const CROWD_PAUSE: Duration = Duration::from_millis(1);

/// The pause after a hint is at most 63 ms.
const CROWD_MAX: u32 = 6;
