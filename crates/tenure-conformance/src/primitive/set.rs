//! Several leases at once: all or nothing, and without deadlock.

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure::{Error, ErrorKind, LeaseSet};
use tenure_store::{BoxFuture, Key};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure, fail};
use crate::trial::Trial;
use crate::world::process::Process;
use crate::world::{World, failed};

pub(crate) const CLAUSE: Clause = Clause {
    name: "set",
    checks: &[
        check!("contenders of overlapping sets in any order get their turn, and share no lease", any_order),
        check!("a set of which one lease is held elsewhere keeps none of the others", all_or_nothing),
        check!("when one lease of a set is taken over, its holder stops and releases the others", first_loss),
        check!("a set whose holder is cut off is lost before another has any of its leases", cut_off),
    ],
};

/// Each contender acquires its set, keeps it for a moment, and acquires it again. One judge inspects all sets at every
/// step.
async fn any_order(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let [a, b, c] = ["a", "b", "c"].map(|name| trial.key(name));
    let orders = [vec![a.clone(), b.clone()], vec![b.clone(), a.clone()], vec![c, b, a]];
    let mut processes = Vec::new();
    for number in 0..orders.len() {
        processes.push(world.process(number).await?);
    }
    let mut judge = SetJudge::new(&world, &processes, &orders);
    for _ in 0..judge.steps_max() {
        if judge.is_done() {
            break;
        }
        trial.harness.pause(world.step()).await;
        judge.look_at_all()?;
    }
    let (grants, wanted) = (judge.grants, orders.len() * judge.turns);
    ensure!(judge.is_done(), "only {grants} of {wanted} sets in {:?}", world.step() * judge.steps_max());
    Ok(())
}

struct SetJudge<'a> {
    world: &'a World<'a>,
    processes: &'a [Process],
    orders: &'a [Vec<Key>],
    acquiring: FuturesUnordered<BoxFuture<'a, (SetTurn, Result<LeaseSet, Error>)>>,
    holding: Vec<(SetTurn, LeaseSet)>,
    releasing: FuturesUnordered<BoxFuture<'a, SetTurn>>,
    turns: usize,
    grants: usize,
}

#[derive(Clone, Copy)]
struct SetTurn {
    contender: usize,
    turns_left: usize,
}

impl<'a> SetJudge<'a> {
    fn new(world: &'a World<'a>, processes: &'a [Process], orders: &'a [Vec<Key>]) -> Self {
        let mut judge = Self {
            world,
            processes,
            orders,
            acquiring: FuturesUnordered::new(),
            holding: Vec::new(),
            releasing: FuturesUnordered::new(),
            // Without hints, each hand-over of a lease takes a third of a ttl.
            turns: if world.trial.promises.watch { TURNS } else { 1 },
            grants: 0,
        };
        for contender in 0..orders.len() {
            judge.start_acquire(SetTurn { contender, turns_left: judge.turns });
        }
        judge
    }

    fn steps_max(&self) -> u32 {
        let ttls = (self.orders.len() * self.turns) as u32 + SLACK;
        ttls * (self.world.ttl.as_nanos() / self.world.step().as_nanos()) as u32
    }

    fn is_done(&self) -> bool {
        self.acquiring.is_empty() && self.holding.is_empty() && self.releasing.is_empty()
    }

    fn start_acquire(&mut self, turn: SetTurn) {
        let request = self.processes[turn.contender].wants_all(&self.orders[turn.contender]);
        let request = request.wait(self.world.step() * self.steps_max());
        self.acquiring.push(Box::pin(async move { (turn, request.acquire().await) }));
    }

    /// Inspects all contenders once.
    fn look_at_all(&mut self) -> CheckResult {
        // The sets of the last look have been held for a step.
        for (turn, set) in self.holding.drain(..) {
            self.releasing.push(Box::pin(async move {
                // A lease that cannot be vacated lapses.
                let _ = set.release().await;
                turn
            }));
        }
        while let Some(Some((turn, answer))) = self.acquiring.next().now_or_never() {
            self.grants += 1;
            self.holding.push((turn, answer.map_err(failed)?));
        }
        for (number, (_, a)) in self.holding.iter().enumerate() {
            for (_, b) in &self.holding[number + 1..] {
                are_sets_apart(a, b)?;
            }
        }
        while let Some(Some(mut turn)) = self.releasing.next().now_or_never() {
            turn.turns_left -= 1;
            if turn.turns_left > 0 {
                self.start_acquire(turn);
            }
        }
        Ok(())
    }
}

/// Verifies that not both sets are held, because they share a key. A lost set stays lost, so the second check of `a`
/// shows that it was held throughout.
fn are_sets_apart(a: &LeaseSet, b: &LeaseSet) -> CheckResult {
    let both = a.check().is_ok() && b.check().is_ok() && a.check().is_ok();
    ensure!(!both, "two sets that share a lease are held at once: {a:?} and {b:?}");
    Ok(())
}

async fn all_or_nothing(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (owner, other) = (world.process(0).await?, world.process(1).await?);
    let keys = ["first", "second", "third"].map(|name| trial.key(name));
    let held = world.granted(owner.wants(&keys[1])).await?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match world.within("an attempt", other.wants_all(&keys).try_acquire()).await? {
            Ok(set) => fail!("{set:?} was granted although {held:?}"),
            Err(error) if error.kind() == ErrorKind::Held => break,
            // An answer was late, on a busy machine.
            Err(error) if error.kind() == ErrorKind::Unavailable && attempts < ATTEMPTS => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let record = world.record(&keys[0]).await?;
    ensure!(!record.is_held(), "an attempt that failed left {} held: {record:?}", keys[0]);
    trial.is_absent(&keys[2]).await?;
    world.is_kept(&held).await?;
    world.released(held).await?;
    let set = world.all_granted(other.wants_all(&keys)).await?;
    for lease in set.leases() {
        world.is_recorded(lease).await?;
    }
    Ok(())
}

async fn first_loss(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (holder, other) = (world.process(0).await?, world.process(1).await?);
    let keys = ["first", "second", "third"].map(|name| trial.key(name));
    let set = world.all_granted(holder.wants_all(&keys)).await?;
    let taken = world.granted(other.wants(&keys[1]).revoke("a check")).await?;
    ensure!(set.check().is_err(), "a set of which {taken:?} was taken over is still held");
    let loss = world.within("the loss", set.lost()).await?;
    ensure!(loss.key == keys[1], "{} was taken over, and the set was lost by {loss}", keys[1]);
    for key in [&keys[0], &keys[2]] {
        let lease = world.granted(other.wants(key)).await?;
        ensure!(Some(lease.token()) > set.token(key), "{lease:?} is not newer than {set:?}");
    }
    world.is_kept(&taken).await
}

async fn cut_off(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (holder, other) = (world.process(0).await?, world.process(1).await?);
    let keys = ["first", "second"].map(|name| trial.key(name));
    let set = world.all_granted(holder.wants_all(&keys)).await?;
    holder.wire.cut();
    let lease = world.granted(other.wants(&keys[0])).await?;
    ensure!(set.check().is_err(), "{lease:?} was granted while {set:?} is held");
    let newer = world.granted(other.wants(&keys[1])).await?;
    for lease in [&lease, &newer] {
        ensure!(Some(lease.token()) > set.token(lease.key()), "{lease:?} is not newer than {set:?}");
    }
    holder.wire.open();
    world.is_kept(&lease).await
}

/// Number of times that each contender is granted its set.
const TURNS: usize = 2;

/// Number of attempts that may fail on a busy machine.
const ATTEMPTS: usize = 4;

/// In ttls: the cost of a few leases that were lost on a busy machine.
const SLACK: u32 = 4;
