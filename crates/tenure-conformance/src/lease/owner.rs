//! One owner at a time, for any number of contenders.

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure::{Error, Lease, Token};
use tenure_store::{BoxFuture, Key};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure};
use crate::trial::Trial;
use crate::world::process::Process;
use crate::world::{World, are_apart, failed, is_newer};

pub(crate) const CLAUSE: Clause = Clause {
    name: "owner",
    checks: &[check!("of many contenders one owns it at a time, each with a greater token", one_at_a_time)],
};

/// Every contender acquires the lease, keeps it for a moment, and acquires it again. One judge inspects all leases at
/// every step, so that the check need not rely on a contender's own account of the times.
async fn one_at_a_time(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let key = trial.key("wanted");
    let mut processes = Vec::new();
    for number in 0..trial.connections().len().min(trial.sizes.contenders) {
        processes.push(world.process(number).await?);
    }
    let mut judge = Judge::new(&world, &processes, key);
    judge.begin();
    for _ in 0..judge.steps_max() {
        if judge.is_done() {
            break;
        }
        trial.harness.pause(world.step()).await;
        judge.look_at_all()?;
    }
    let (grants, wanted) = (judge.grants, trial.sizes.contenders * trial.sizes.turns);
    ensure!(judge.is_done(), "only {grants} of {wanted} grants in {:?}", world.step() * judge.steps_max());
    trial.note(format!("{grants} grants, {} of them lapsed", judge.lapsed));
    Ok(())
}

struct Judge<'a> {
    world: &'a World<'a>,
    processes: &'a [Process],
    key: Key,
    acquiring: FuturesUnordered<BoxFuture<'a, (Contender, Result<Lease, Error>)>>,
    holding: Vec<HeldLease>,
    releasing: FuturesUnordered<BoxFuture<'a, Contender>>,
    /// The token of the latest grant that was seen while it was held.
    latest: Token,
    grants: usize,
    lapsed: usize,
}

#[derive(Clone, Copy)]
struct Contender {
    number: usize,
    turns_left: usize,
}

struct HeldLease {
    contender: Contender,
    lease: Lease,
    looks_left: u32,
}

impl<'a> Judge<'a> {
    fn new(world: &'a World<'a>, processes: &'a [Process], key: Key) -> Self {
        Self {
            world,
            processes,
            key,
            acquiring: FuturesUnordered::new(),
            holding: Vec::new(),
            releasing: FuturesUnordered::new(),
            latest: Token::ZERO,
            grants: 0,
            lapsed: 0,
        }
    }

    fn begin(&mut self) {
        let sizes = self.world.trial.sizes;
        for number in 0..sizes.contenders {
            self.start_acquire(Contender { number, turns_left: sizes.turns });
        }
    }

    /// A hand-over takes at most a third of a ttl without a watch; a holder that dies takes a full ttl.
    fn steps_max(&self) -> u32 {
        let sizes = self.world.trial.sizes;
        let grants = u32::try_from(sizes.contenders * sizes.turns).unwrap_or(u32::MAX);
        let ttls = grants.saturating_add(SLACK);
        ttls.saturating_mul((self.world.ttl.as_nanos() / self.world.step().as_nanos()) as u32)
    }

    fn is_done(&self) -> bool {
        self.acquiring.is_empty() && self.holding.is_empty() && self.releasing.is_empty()
    }

    fn start_acquire(&mut self, contender: Contender) {
        let process = &self.processes[contender.number % self.processes.len()];
        let request = process.wants(&self.key).wait(self.world.step() * self.steps_max());
        self.acquiring.push(Box::pin(async move { (contender, request.acquire().await) }));
    }

    /// Inspects all contenders once.
    fn look_at_all(&mut self) -> CheckResult {
        while let Some(Some((contender, answer))) = self.acquiring.next().now_or_never() {
            self.granted(contender, answer.map_err(failed)?)?;
        }
        for (number, a) in self.holding.iter().enumerate() {
            for b in &self.holding[number + 1..] {
                are_apart(&a.lease, &b.lease)?;
            }
        }
        let done = |holding: &mut HeldLease| {
            holding.looks_left = holding.looks_left.saturating_sub(1);
            holding.looks_left == 0
        };
        for HeldLease { contender, lease, .. } in self.holding.extract_if(.., done) {
            self.releasing.push(Box::pin(async move {
                // A lease that cannot be vacated lapses.
                let _ = lease.release().await;
                contender
            }));
        }
        while let Some(Some(mut contender)) = self.releasing.next().now_or_never() {
            contender.turns_left -= 1;
            if contender.turns_left > 0 {
                self.start_acquire(contender);
            }
        }
        Ok(())
    }

    /// The current holder must have been granted the lease after all earlier holders.
    fn granted(&mut self, contender: Contender, lease: Lease) -> CheckResult {
        self.grants += 1;
        if lease.check().is_ok() {
            is_newer(&lease, self.latest, "from one owner to the next")?;
            self.latest = lease.token();
        } else {
            self.lapsed += 1;
        }
        self.holding.push(HeldLease { contender, lease, looks_left: LOOKS_HELD });
        Ok(())
    }
}

/// Number of inspections during which an owner keeps the lease.
const LOOKS_HELD: u32 = 3;

/// In ttls: the cost of a few holders that were lost on a busy machine.
const SLACK: u32 = 4;
