use std::rc::Rc;

use super::Reached;
use super::executor::ThreadRole;
use super::world::DriverWorld;
use crate::parts::Link;

/// A process on a machine.
pub(super) struct DriverProcess {
    pub(super) machine: usize,
    pub(super) alive: bool,
    /// True if it ends as soon as none of its tasks is in the middle of a poll.
    killed: bool,
    /// Number of its tasks in the middle of a poll.
    running: i32,
    /// The whole process stands still until then.
    paused_until: u64,
    /// The thread of the keeper does not run until then.
    keeper_stalled_until: u64,
    /// The executor of the user does not run until then.
    user_stalled_until: u64,
    /// Trouble of its own or of its store until then: no duty has a bound before.
    pub(super) troubled_until: u64,
    /// Its credentials are wrong until then.
    pub(super) denied_until: u64,
    /// Number of its tasks that are preempted in the middle of a poll.
    pub(super) preempted: u32,
    pub(super) link: Link,
    /// True if its keeper was killed: no one can vacate what it held.
    pub(super) keeper_killed: bool,
}

impl DriverProcess {
    pub(super) fn on(machine: usize) -> Self {
        Self {
            machine,
            alive: true,
            killed: false,
            running: 0,
            paused_until: 0,
            keeper_stalled_until: 0,
            user_stalled_until: 0,
            troubled_until: 0,
            denied_until: 0,
            preempted: 0,
            link: Link::default(),
            keeper_killed: false,
        }
    }
}

impl DriverProcess {
    /// True if none of its tasks is in the middle of a poll.
    pub(super) fn is_between_polls(&self) -> bool {
        self.running == 0
    }
}

impl DriverWorld {
    /// Reads or changes a process.
    pub(super) fn process<T>(&self, process: usize, with: impl FnOnce(&mut DriverProcess) -> T) -> T {
        with(&mut self.processes.borrow_mut()[process])
    }

    /// Counts tasks of a process in the middle of a poll.
    pub(super) fn running(&self, process: usize, change: i32) -> i32 {
        self.process(process, |it| {
            it.running += change;
            it.running
        })
    }

    pub(super) fn may_run(&self, process: usize, role: ThreadRole) -> bool {
        let now = self.now.get();
        self.process(process, |it| {
            let stalled = match role {
                ThreadRole::Keeper => it.keeper_stalled_until,
                ThreadRole::User => it.user_stalled_until,
            };
            it.alive && it.paused_until.max(stalled) <= now
        })
    }

    /// End of the pause of this process; `None` if it is not paused.
    pub(super) fn is_paused(&self, process: usize) -> Option<u64> {
        let now = self.now.get();
        self.process(process, |it| Some(it.paused_until).filter(|until| *until > now))
    }

    /// Stops a process, or one of its threads, for a span.
    pub(super) fn stop(&self, process: usize, span: u64, role: Option<ThreadRole>) {
        let until = self.now.get() + span;
        self.process(process, |it| {
            let stopped = match role {
                None => &mut it.paused_until,
                Some(ThreadRole::Keeper) => &mut it.keeper_stalled_until,
                Some(ThreadRole::User) => &mut it.user_stalled_until,
            };
            *stopped = (*stopped).max(until);
            it.troubled_until = it.troubled_until.max(until);
        });
        // Its tasks are looked at again.
        self.after(span, |_| {});
    }

    /// No duty of this process has a bound for a span.
    pub(super) fn trouble(&self, process: usize, span: u64) {
        let until = self.now.get() + span;
        self.process(process, |it| it.troubled_until = it.troubled_until.max(until));
    }

    /// Rotates the credentials of a process: the store denies its calls for a span. An earlier rotation ends.
    pub(super) fn rotate_credentials(&self, process: usize, span: u64) {
        self.reach(Reached::Rotated);
        let until = self.now.get() + span;
        self.process(process, |it| it.denied_until = until);
        self.trouble(process, span);
    }

    /// Kills a process, as SIGKILL does.
    pub(super) fn kill(self: &Rc<Self>, process: usize) {
        self.process(process, |it| it.killed = true);
        self.end_if_killed(process);
    }

    pub(super) fn end_if_killed(self: &Rc<Self>, process: usize) {
        let ends = self.process(process, |it| {
            let ends = it.alive && it.killed && it.running == 0;
            it.alive &= !ends;
            ends
        });
        if ends {
            let before = self.current.replace(process);
            self.tasks.end(process, None);
            self.current.set(before);
        }
    }

    /// Numbers of the processes that are alive.
    pub(super) fn alive(&self) -> Vec<usize> {
        let processes = self.processes.borrow();
        processes
            .iter()
            .enumerate()
            .filter(|(_, it)| it.alive && !it.killed)
            .map(|(number, _)| number)
            .collect()
    }
}
