use std::collections::BTreeMap;

use super::trouble_pace::TroublePace;
use super::urgency::{CallKind, Urgency};
use crate::clock::Instant;
use crate::host::simulation::{Duty, does};

/// Places for calls on the store, and the calls that wait for one.
#[derive(Debug)]
pub(crate) struct PlaceQueue<T> {
    free: usize,
    /// Number of further polls that may have a place. A quarter of the places is for renewals alone, so that polls that hang
    /// keep no renewal waiting.
    polls_left: usize,
    waiting: BTreeMap<Ticket, T>,
    pub(crate) pace: TroublePace,
    /// Number of tickets given out.
    tickets: u64,
    /// Renewals that got a place in a row while a poll waited.
    in_a_row: u32,
}

/// Identifies a call that waits, in the order in which calls get places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(Urgency, u64);

impl<T> PlaceQueue<T> {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            free: places,
            polls_left: places - places.div_ceil(4).min(places.saturating_sub(1)),
            waiting: BTreeMap::new(),
            pace: TroublePace::default(),
            tickets: 0,
            in_a_row: 0,
        }
    }

    /// Takes a place at once; `false` if the call must wait. In trouble every call waits, so that the pace sees it.
    pub(crate) fn try_take(&mut self, kind: CallKind) -> bool {
        let taken = self.has_place(kind) && self.waiting.is_empty() && !self.pace.is_on();
        if taken {
            self.take(kind);
        }
        taken
    }

    fn has_place(&self, kind: CallKind) -> bool {
        self.free > 0 && (kind == CallKind::Renewal || self.polls_left > 0)
    }

    fn take(&mut self, kind: CallKind) {
        self.free -= 1;
        self.polls_left -= usize::from(kind == CallKind::Poll);
    }

    /// Waits for a place.
    pub(crate) fn wait(&mut self, urgency: Urgency, call: T) -> Ticket {
        self.tickets += 1;
        let urgency = if does(Duty::RenewFirst) { urgency } else { Urgency::Poll };
        let ticket = Ticket(urgency, self.tickets);
        self.waiting.insert(ticket, call);
        ticket
    }

    /// Removes a call that no longer waits.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<T> {
        self.waiting.remove(&ticket)
    }

    /// Gives a place back.
    pub(crate) fn give_back(&mut self, kind: CallKind) {
        self.free += 1;
        self.polls_left += usize::from(kind == CallKind::Poll);
    }

    /// Earliest time at which a waiting call can get a place; `None` if none can before another call ends.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.next_ticket().map(|_| self.pace.next_at())
    }

    /// The next call that gets a place now, and its kind.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(CallKind, T)> {
        self.pace.end(now);
        let ticket = self.next_ticket().filter(|_| self.pace.next_at() <= now)?;
        let kind = ticket.0.kind();
        let poll_waits = kind == CallKind::Renewal && self.first_poll().is_some();
        self.in_a_row = if poll_waits { self.in_a_row + 1 } else { 0 };
        self.take(kind);
        self.pace.sent(now);
        Some((kind, self.waiting.remove(&ticket)?))
    }

    /// The call that gets the next place; `None` if there is no place for a call that waits.
    fn next_ticket(&self) -> Option<Ticket> {
        let first = *self.waiting.first_key_value()?.0;
        let has_turn = self.in_a_row >= RENEWALS_PER_POLL && does(Duty::LetPollsThrough);
        let poll = self.first_poll().filter(|_| has_turn && self.has_place(CallKind::Poll));
        Some(poll.unwrap_or(first)).filter(|ticket| self.has_place(ticket.0.kind()))
    }

    fn first_poll(&self) -> Option<Ticket> {
        let polls = Ticket(Urgency::Poll, 0);
        self.waiting.range(polls..).next().map(|(ticket, _)| *ticket)
    }
}

/// Renewals that get a place before a waiting poll gets one. A poll that is never answered makes its contender wait for ever.
const RENEWALS_PER_POLL: u32 = 3;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// The calls that get a place, in order, if each gives it back before the next one.
    fn order(queue: &mut PlaceQueue<&'static str>) -> Vec<&'static str> {
        let mut order = vec![];
        while let Some((kind, call)) = queue.next(at(100)) {
            order.push(call);
            queue.give_back(kind);
        }
        order
    }

    #[test]
    fn renewals_go_before_polls_and_the_nearest_deadline_goes_first() {
        let mut queue = PlaceQueue::new(1);
        queue.wait(Urgency::Poll, "first poll");
        queue.wait(Urgency::Poll, "second poll");
        queue.wait(Urgency::Renewal(at(30)), "late");
        queue.wait(Urgency::Renewal(at(20)), "early");
        queue.wait(Urgency::Renewal(at(20)), "early, asked later");
        assert_eq!(order(&mut queue), ["early", "early, asked later", "late", "first poll", "second poll"]);
    }

    #[test]
    fn a_steady_load_of_renewals_lets_one_poll_through_in_four_calls() {
        let mut queue = PlaceQueue::new(1);
        for number in 0..100 {
            queue.wait(Urgency::Renewal(at(number)), "renewal");
        }
        queue.wait(Urgency::Poll, "poll");
        queue.wait(Urgency::Poll, "poll");
        let order = order(&mut queue);
        let polls: Vec<_> = (0..order.len()).filter(|place| order[*place] == "poll").collect();
        assert_eq!(polls, [3, 7]);
    }

    #[test]
    fn no_call_gets_a_place_before_another_one_gives_it_back() {
        let mut queue = PlaceQueue::new(1);
        assert!(queue.try_take(CallKind::Poll));
        assert!(!queue.try_take(CallKind::Renewal));
        let left = queue.wait(Urgency::Poll, "leaves");
        queue.wait(Urgency::Poll, "waits");
        assert_eq!((queue.next_at(), queue.next(at(5))), (None, None));
        assert_eq!(queue.leave(left), Some("leaves"));
        queue.give_back(CallKind::Poll);
        assert!(!queue.try_take(CallKind::Poll), "another call waits");
        assert_eq!(queue.next_at(), Some(Instant::default()));
        assert_eq!(queue.next(at(5)), Some((CallKind::Poll, "waits")));
        assert_eq!(queue.next(at(5)), None);
    }

    #[test]
    fn in_trouble_a_call_also_waits_for_the_pace() {
        let mut queue = PlaceQueue::new(100);
        queue.pace.failed(at(0), Duration::from_secs(1));
        assert!(!queue.try_take(CallKind::Renewal), "every call waits for the pace");
        for _ in 0..50 {
            queue.wait(Urgency::Poll, "poll");
        }
        while queue.next(at(0)).is_some() {}
        let next = queue.next_at().expect("places are free");
        assert!(next > at(0));
        assert_eq!(queue.next(next), Some((CallKind::Poll, "poll")));
    }

    #[test]
    fn polls_that_hang_leave_a_quarter_of_the_places_to_renewals() {
        let mut queue = PlaceQueue::new(8);
        let polls = (0..10).filter(|_| queue.try_take(CallKind::Poll)).count();
        assert_eq!(polls, 6);
        queue.wait(Urgency::Poll, "poll");
        assert_eq!((queue.next_at(), queue.next(at(5))), (None, None));
        queue.wait(Urgency::Renewal(at(9)), "renewal");
        assert_eq!(queue.next(at(5)), Some((CallKind::Renewal, "renewal")));
        queue.give_back(CallKind::Poll);
        assert_eq!(queue.next(at(5)), Some((CallKind::Poll, "poll")));
    }

    #[test]
    fn renewals_may_have_all_places() {
        let mut queue = PlaceQueue::<&str>::new(8);
        assert_eq!((0..10).filter(|_| queue.try_take(CallKind::Renewal)).count(), 8);
    }
}
