use std::collections::BTreeMap;

use super::trouble_pace::TroublePace;
use super::urgency::Urgency;
use crate::clock::Instant;
use crate::host::simulation::{Duty, does};

/// Places for calls on the store, and the calls that wait for one.
#[derive(Debug)]
pub(crate) struct PlaceQueue<T> {
    free: usize,
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
        Self { free: places, waiting: BTreeMap::new(), pace: TroublePace::default(), tickets: 0, in_a_row: 0 }
    }

    /// Takes a place at once; `false` if the call must wait. In trouble every call waits, so that the pace sees it.
    pub(crate) fn try_take(&mut self) -> bool {
        let taken = self.free > 0 && self.waiting.is_empty() && !self.pace.is_on();
        self.free -= usize::from(taken);
        taken
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
    pub(crate) fn give_back(&mut self) {
        self.free += 1;
    }

    /// Earliest time at which a waiting call can get a place; `None` if none can before another call ends.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        (self.free > 0 && !self.waiting.is_empty()).then(|| self.pace.next_at())
    }

    /// The next call that gets a place now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<T> {
        self.pace.end(now);
        if self.next_at()? > now {
            return None;
        }
        let (first, polls) = (*self.waiting.first_key_value()?.0, Ticket(Urgency::Poll, 0));
        let poll = self.waiting.range(polls..).next().map(|(ticket, _)| *ticket);
        let has_turn = self.in_a_row >= RENEWALS_PER_POLL && does(Duty::LetPollsThrough);
        let ticket = poll.filter(|_| has_turn).unwrap_or(first);
        self.in_a_row = if poll.is_some_and(|poll| poll != ticket) { self.in_a_row + 1 } else { 0 };
        self.free -= 1;
        self.pace.sent(now);
        self.waiting.remove(&ticket)
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
        queue.give_back();
        let mut order = vec![];
        while let Some(call) = queue.next(at(100)) {
            order.push(call);
            queue.give_back();
        }
        order
    }

    #[test]
    fn renewals_go_before_polls_and_the_nearest_deadline_goes_first() {
        let mut queue = PlaceQueue::new(0);
        queue.wait(Urgency::Poll, "first poll");
        queue.wait(Urgency::Poll, "second poll");
        queue.wait(Urgency::Renewal(at(30)), "late");
        queue.wait(Urgency::Renewal(at(20)), "early");
        queue.wait(Urgency::Renewal(at(20)), "early, asked later");
        assert_eq!(order(&mut queue), ["early", "early, asked later", "late", "first poll", "second poll"]);
    }

    #[test]
    fn a_steady_load_of_renewals_lets_one_poll_through_in_four_calls() {
        let mut queue = PlaceQueue::new(0);
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
        assert!(queue.try_take());
        assert!(!queue.try_take());
        let left = queue.wait(Urgency::Poll, "leaves");
        queue.wait(Urgency::Poll, "waits");
        assert_eq!((queue.next_at(), queue.next(at(5))), (None, None));
        assert_eq!(queue.leave(left), Some("leaves"));
        queue.give_back();
        assert!(!queue.try_take(), "another call waits");
        assert_eq!(queue.next_at(), Some(Instant::default()));
        assert_eq!(queue.next(at(5)), Some("waits"));
        assert_eq!(queue.next(at(5)), None);
    }

    #[test]
    fn in_trouble_a_call_also_waits_for_the_pace() {
        let mut queue = PlaceQueue::new(100);
        queue.pace.failed(at(0), Duration::from_secs(1));
        assert!(!queue.try_take(), "every call waits for the pace");
        for _ in 0..50 {
            queue.wait(Urgency::Poll, "poll");
        }
        while queue.next(at(0)).is_some() {}
        let next = queue.next_at().expect("places are free");
        assert!(next > at(0));
        assert_eq!(queue.next(next), Some("poll"));
    }
}
