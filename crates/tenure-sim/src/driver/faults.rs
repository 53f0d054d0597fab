//! Faults that strike processes, machines, connections and the store, until everything is healed.

use std::rc::Rc;

use super::Reached;
use super::executor::ThreadRole;
use super::users::start_process;
use super::world::DriverWorld;
use crate::Fault;
use crate::parts::Cut;
use crate::time::{MILLI, SECOND};

impl DriverWorld {
    /// Arranges the next fault.
    pub(super) fn next_fault(&self) {
        if self.plan.fault_every == 0 {
            return;
        }
        let span = self.draw(|rng| rng.skewed(0, 2 * self.plan.fault_every));
        self.after(span, |world| {
            if !world.healed.get() {
                world.strike();
                world.next_fault();
            }
        });
    }

    fn strike(self: &Rc<Self>) {
        let alive = self.alive();
        if alive.is_empty() {
            return;
        }
        let process = alive[self.draw(|rng| rng.index(alive.len()))];
        let span = self.draw(|rng| rng.skewed(MILLI, 3 * self.plan.ttl_most()));
        let kind = self.draw(|rng| rng.below(11));
        self.note(
            format_args!("fault"),
            kind,
            format_args!("kind {kind} strikes process {process} for {} ms", span / MILLI),
        );
        match kind {
            0 => {
                self.reach(Reached::Paused);
                self.stop(process, span, None);
            }
            1 => {
                self.reach(Reached::Suspended);
                let machine = self.process(process, |it| it.machine);
                let on_it = |other: &usize| self.process(*other, |it| it.machine) == machine;
                alive.iter().filter(|other| on_it(other)).for_each(|other| self.stop(*other, span, None));
            }
            2 => {
                self.reach(Reached::KeeperStalled);
                self.stop(process, span, Some(ThreadRole::Keeper));
            }
            3 => {
                self.reach(Reached::UserStalled);
                self.stop(process, span, Some(ThreadRole::User));
            }
            4 => self.cut(process, span),
            5 => {
                self.reach(Reached::Outage);
                self.server.borrow_mut().down = true;
                alive.iter().for_each(|process| self.trouble(*process, span));
                self.after(span, |world| world.server.borrow_mut().down = false);
            }
            6 => {
                self.reach(Reached::KeeperDied);
                self.process(process, |it| it.keeper_killed = true);
                if self.process(process, |it| it.is_between_polls()) {
                    self.tasks.end(process, Some(ThreadRole::Keeper));
                }
                // Its users see only errors from now on: the program restarts.
                self.restart(process, span);
            }
            7 => self.rotate_credentials(process, span),
            8 => {
                self.tally.borrow_mut().fault(Fault::Storm);
                self.server.borrow_mut().storm = true;
                alive.iter().for_each(|process| self.trouble(*process, span));
                self.after(span, |world| world.server.borrow_mut().storm = false);
            }
            _ => {
                self.reach(Reached::Killed);
                self.kill(process);
                self.restart(process, span);
            }
        }
    }

    fn cut(self: &Rc<Self>, process: usize, span: u64) {
        let (cut, fault) = self.draw(|rng| rng.pick(Cut::KINDS));
        self.tally.borrow_mut().fault(fault);
        let number = self.process(process, |it| {
            it.link.cut = cut;
            it.link.cuts += 1;
            it.link.cuts
        });
        self.trouble(process, span);
        self.after(span, move |world| {
            world.process(process, |it| {
                if it.link.cuts == number {
                    it.link.cut = Cut::default();
                }
            });
        });
    }

    /// After a while, kills the process if it is alive, and starts another one on its machine.
    fn restart(self: &Rc<Self>, process: usize, span: u64) {
        let machine = self.process(process, |it| it.machine);
        self.after(span.min(5 * SECOND), move |world| {
            world.kill(process);
            if !world.stopping.get() {
                start_process(world, machine);
            }
        });
    }

    /// Ends outages, storms, cuts and rotations of credentials, and lets no new fault begin. Pauses last until their
    /// end; hints may still be lost.
    pub(super) fn heal(self: &Rc<Self>) {
        self.healed.set(true);
        self.server.borrow_mut().down = false;
        self.server.borrow_mut().storm = false;
        for process in self.alive() {
            self.process(process, |it| {
                it.link.cut = Cut::default();
                it.denied_until = 0;
            });
        }
    }
}
