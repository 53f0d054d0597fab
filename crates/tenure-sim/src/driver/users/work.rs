use std::pin::Pin;
use std::task::{Context, Poll};

use crate::driver::oracle::{GrantId, Probe};
use crate::driver::world::{try_world, world};

/// Work under a grant that goes on.
pub(super) struct Counted(GrantId);

impl Counted {
    pub(super) fn new(grant: &GrantId) -> Self {
        world().with_grant(grant, |grant| grant.change_works(1));
        Self(grant.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(world) = try_world() {
            world.with_grant(&self.0, |grant| grant.change_works(-1));
        }
    }
}

/// Work whose polls the oracle checks. It goes on from its first poll until it is dropped.
pub(super) struct CheckedWork<'a> {
    process: usize,
    /// The leases under which it runs.
    members: Vec<(GrantId, Probe)>,
    counted: Vec<Counted>,
    work: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

impl<'a> CheckedWork<'a> {
    pub(super) fn new(
        process: usize,
        members: Vec<(GrantId, Probe)>,
        work: impl Future<Output = ()> + 'a,
    ) -> Self {
        Self { process, members, counted: Vec::new(), work: Box::pin(work) }
    }

    fn judge(&self) {
        let world = world();
        match &self.members[..] {
            [(grant, probe)] => world.judge_work(self.process, grant, probe),
            // A thread that is preempted between the checks of two leases may poll late.
            members if world.plan.preemption == 0 => {
                world.judge_set(self.process, true, &world.held_members(self.process, members));
            }
            _ => {}
        }
        self.members.iter().for_each(|(grant, _)| world.judge_witness_of_work(self.process, grant));
    }
}

impl Future for CheckedWork<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.judge();
        let this = &mut *self;
        if this.counted.is_empty() {
            this.counted = this.members.iter().map(|(grant, _)| Counted::new(grant)).collect();
        }
        this.work.as_mut().poll(context)
    }
}
