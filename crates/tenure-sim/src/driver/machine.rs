use std::cell::RefCell;

use super::kernel::Kernel;
use super::pages::MachinePages;
use super::plan::MachinePlan;
use crate::parts::Clock;

/// A machine: its clock, the kernel with the files of its witnesses, and the pages of its logbooks.
pub(super) struct Machine {
    pub(super) clock: Clock,
    /// Error of its wall clock, in milliseconds.
    pub(super) wall_offset: u64,
    pub(super) kernel: RefCell<Kernel>,
    pub(super) pages: RefCell<MachinePages>,
}

impl Machine {
    pub(super) fn new(plan: &MachinePlan) -> Self {
        Self {
            clock: Clock::new(0, plan.boot, plan.rate),
            wall_offset: plan.wall_offset,
            kernel: RefCell::new(Kernel::default()),
            pages: RefCell::default(),
        }
    }
}
