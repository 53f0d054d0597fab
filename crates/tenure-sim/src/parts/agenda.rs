use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Pending events, earliest first. Events at the same instant stay in the order of insertion.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<DueEvent<E>>,
    count: u64,
}

#[derive(Debug)]
struct DueEvent<E> {
    at: u64,
    number: u64,
    event: E,
}

impl<E> Agenda<E> {
    /// An empty agenda.
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), count: 0 }
    }

    /// Adds an event that happens at this instant.
    pub(crate) fn push(&mut self, at: u64, event: E) {
        self.count += 1;
        self.heap.push(DueEvent { at, number: self.count, event });
    }

    /// Time of the earliest event.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|due| due.at)
    }

    /// Removes the earliest event.
    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        self.heap.pop().map(|due| (due.at, due.event))
    }
}

impl<E> Ord for DueEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for DueEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for DueEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for DueEvent<E> {}
