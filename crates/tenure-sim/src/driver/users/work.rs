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
    grant: GrantId,
    probe: Probe,
    counted: Option<Counted>,
    work: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

impl<'a> CheckedWork<'a> {
    pub(super) fn new(
        process: usize,
        grant: &GrantId,
        probe: Probe,
        work: impl Future<Output = ()> + 'a,
    ) -> Self {
        Self { process, grant: grant.clone(), probe, counted: None, work: Box::pin(work) }
    }
}

impl Future for CheckedWork<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = world();
        world.judge_work(self.process, &self.grant, &self.probe);
        world.judge_witness_of_work(self.process, &self.grant);
        let this = &mut *self;
        this.counted.get_or_insert_with(|| Counted::new(&this.grant));
        drop(world);
        this.work.as_mut().poll(context)
    }
}
