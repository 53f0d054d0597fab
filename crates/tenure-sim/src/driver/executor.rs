use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::LocalBoxFuture;

use super::panics;
use super::world::DriverWorld;
use crate::Invariant;
use crate::time::MILLI;

/// Tasks of all processes. One of those that are ready runs at a time, chosen by the seed.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: RefCell<Vec<Task>>,
    ready: Arc<Mutex<BTreeSet<usize>>>,
}

/// The thread on which a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadRole {
    /// The keeper's own thread.
    Keeper,
    /// The executor of the user.
    User,
}

struct Task {
    process: usize,
    role: ThreadRole,
    /// `None` while it runs, and after its end.
    future: Option<LocalBoxFuture<'static, ()>>,
    ended: bool,
}

struct ReadyTask {
    id: usize,
    ready: Arc<Mutex<BTreeSet<usize>>>,
}

impl Wake for ReadyTask {
    fn wake(self: Arc<Self>) {
        lock(&self.ready).insert(self.id);
    }
}

impl Tasks {
    /// Starts a task. Its first poll comes later.
    pub(super) fn spawn(&self, process: usize, role: ThreadRole, future: LocalBoxFuture<'static, ()>) {
        let mut tasks = self.tasks.borrow_mut();
        lock(&self.ready).insert(tasks.len());
        tasks.push(Task { process, role, future: Some(future), ended: false });
    }

    /// Ends the tasks of a process: those of this role, or all of them.
    pub(super) fn end(&self, process: usize, role: Option<ThreadRole>) {
        let ended: Vec<_> = {
            let mut tasks = self.tasks.borrow_mut();
            let ending = tasks.iter_mut().filter(|task| task.process == process);
            let mut ending: Vec<_> =
                ending.filter(|task| role.is_none_or(|role| task.role == role)).collect();
            // The keeper first: what the others send then reaches no one.
            ending.sort_by_key(|task| task.role == ThreadRole::User);
            let end = |task: &mut Task| {
                task.ended = true;
                task.future.take()
            };
            ending.into_iter().filter_map(end).collect()
        };
        // Without the borrow: the code of a drop may use the world.
        drop(ended);
    }

    /// True if the process has a task of this role that has not ended.
    pub(super) fn has(&self, process: usize, role: ThreadRole) -> bool {
        let tasks = self.tasks.borrow();
        tasks.iter().any(|task| task.process == process && task.role == role && !task.ended)
    }
}

impl DriverWorld {
    /// Runs one task that is ready; `false` if there is none.
    pub(super) fn run_ready_task(self: &Rc<Self>) -> bool {
        let Some((id, process, role, mut future)) = self.take_ready_task() else { return false };
        let waker = Waker::from(Arc::new(ReadyTask { id, ready: Arc::clone(&self.tasks.ready) }));
        let before = self.current.replace(process);
        let running = self.running(process, 1);
        let polled =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        self.running(process, -1);
        debug_assert!(running > 0);
        let ended = std::mem::replace(&mut self.tasks.tasks.borrow_mut()[id].ended, true);
        match polled {
            Ok(Poll::Pending) if !ended => {
                let task = &mut self.tasks.tasks.borrow_mut()[id];
                (task.future, task.ended) = (Some(future), false);
            }
            // It was ended from outside while it was preempted, or by itself.
            Ok(Poll::Pending | Poll::Ready(())) => drop(future),
            Err(panic) => {
                let said = panics::message(&*panic);
                // Every panic that arrives here breaks P1: the driver catches those of foreign code, and has none of its own.
                let what = match role {
                    ThreadRole::Keeper => "the keeper",
                    ThreadRole::User => "a future of the user",
                };
                self.violate(Invariant::P1, format!("{what} of process {process} panicked: {said}"));
            }
        }
        self.current.set(before);
        self.end_if_killed(process);
        self.judge();
        true
    }

    fn take_ready_task(&self) -> Option<(usize, usize, ThreadRole, LocalBoxFuture<'static, ()>)> {
        let mut tasks = self.tasks.tasks.borrow_mut();
        let mut ready = lock(&self.tasks.ready);
        // A waker of an ended task has no effect.
        ready.retain(|id| tasks[*id].future.is_some() || self.preempted.get() > 0);
        let may_run = |id: &&usize| {
            let task = &tasks[**id];
            task.future.is_some() && self.may_run(task.process, task.role)
        };
        let choices: Vec<usize> = ready.iter().filter(may_run).copied().collect();
        if choices.is_empty() {
            return None;
        }
        let id = choices[self.draw(|rng| rng.index(choices.len()))];
        ready.remove(&id);
        let task = &mut tasks[id];
        Some((id, task.process, task.role, task.future.take()?))
    }

    /// The kernel may preempt the running task here: others run meanwhile.
    pub(super) fn maybe_preempt(self: &Rc<Self>) {
        let chance = if self.healed.get() { 0 } else { self.plan.preemption };
        if chance == 0 || self.preempted.get() >= PREEMPTED_MAX || self.is_over() || !self.chance(chance) {
            return;
        }
        self.reach(super::Reached::Preempted);
        let span = self.draw(|rng| rng.skewed(0, self.plan.preemption_most));
        let current = self.current.get();
        let began = self.now.get();
        self.preempted.set(self.preempted.get() + 1);
        self.process(current, |it| it.preempted += 1);
        self.run_until(began + span);
        self.process(current, |it| it.preempted -= 1);
        self.preempted.set(self.preempted.get() - 1);
        self.current.set(current);
        // Others may have been preempted meanwhile, for longer than the span.
        if self.now.get() - began > PREEMPTED_LONG {
            self.trouble(current, 0);
        }
    }
}

fn lock(ready: &Mutex<BTreeSet<usize>>) -> std::sync::MutexGuard<'_, BTreeSet<usize>> {
    ready.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A preemption of this length or more counts as trouble of its process.
const PREEMPTED_LONG: u64 = 500 * MILLI;

/// Maximum number of tasks that are preempted at the same time.
const PREEMPTED_MAX: u32 = 3;
