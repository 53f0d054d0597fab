//! Futures of the driver that must resolve within a bound.

use std::cell::Cell;
use std::rc::Rc;

use super::world::{DriverWorld, world};
use crate::Invariant;

/// Awaits a future that must resolve within `limit`, counted from the end of the last trouble of its process.
pub(super) async fn bounded<T>(
    process: usize,
    what: &'static str,
    limit: u64,
    future: impl Future<Output = T>,
) -> T {
    let done = Rc::new(Cell::new(false));
    let resolved = Resolved(Rc::clone(&done));
    world().after(limit, move |world| check(world, process, what, limit, done));
    let output = future.await;
    drop(resolved);
    output
}

/// Marks a future as resolved or dropped.
struct Resolved(Rc<Cell<bool>>);

impl Drop for Resolved {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

fn check(world: &Rc<DriverWorld>, process: usize, what: &'static str, limit: u64, done: Rc<Cell<bool>>) {
    let (alive, troubled_until) = world.process(process, |it| (it.alive, it.troubled_until));
    if done.get() || !alive {
        return;
    }
    // The preempted task may be the one that resolves it.
    if world.process(process, |it| it.preempted > 0) {
        return world.after(limit, move |world| check(world, process, what, limit, done));
    }
    let due = troubled_until + limit;
    if let Some(more) = due.checked_sub(world.now.get()).filter(|more| *more > 0) {
        return world.after(more, move |world| check(world, process, what, limit, done));
    }
    let millis = limit / crate::time::MILLI;
    let sentence = format!("{what} of process {process} has not resolved within its bound of {millis} ms");
    world.violate(Invariant::L7, sentence);
}
