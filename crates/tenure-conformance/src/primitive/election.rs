//! Elections: one leader at a time, and observers that see each of them in order.

use futures_util::FutureExt;
use futures_util::future::select_all;
use tenure::{Campaign, Election, ErrorKind, Leaders, Ran, Term, Token};
use tenure_store::Key;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure};
use crate::trial::Trial;
use crate::world::process::Process;
use crate::world::{World, failed};

pub(crate) const CLAUSE: Clause = Clause {
    name: "election",
    checks: &[
        check!(
            "leaders follow one another with growing tokens, and an observer sees each in order",
            in_order
        ),
        check!("a leader that is cut off knows it before another leads", cut_off),
    ],
};

/// Every node campaigns all the time. Each leader resigns when the observer has seen it.
async fn in_order(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let key = trial.key("office");
    let (processes, observing) =
        ([world.process(0).await?, world.process(1).await?], world.process(2).await?);
    let nodes = processes.each_ref().map(|process| node(&world, process, &key));
    let mut campaigns = Vec::new();
    for node in &nodes {
        campaigns.push(node.campaign().map_err(failed)?);
    }
    let mut observer = Observed::new(node(&world, &observing, &key).observe().map_err(failed)?);
    let mut latest = Token::ZERO;
    for _ in 0..TERMS {
        let (number, term) = world.within("an election", next_leader(&mut campaigns)).await??;
        ensure!(
            term.token() > latest,
            "a leader with token {latest} was followed by one with token {}",
            term.token()
        );
        latest = term.token();
        let leading = nodes.iter().filter(|node| node.is_leader()).count();
        ensure!(leading <= 1, "{leading} nodes lead at once");
        let ran = world.within("work", nodes[1 - number].run_if_leader(async {})).await?.map_err(failed)?;
        ensure!(ran == Ran::Skipped, "work for leaders ran on a node that does not lead");
        world.within("the observation of a leader", observer.until(latest)).await??;
        // A term that was lost to a busy machine is over, too.
        let _ = world.within("a resignation", term.resign()).await?;
        ensure!(!nodes[number].is_leader(), "a node leads after its resignation");
    }
    Ok(())
}

/// The first node that wins, and its term. The others continue to campaign.
async fn next_leader(campaigns: &mut [Campaign]) -> Result<(usize, Term), Stop> {
    let winning = campaigns.iter_mut().map(|campaign| campaign.next().boxed());
    let (won, number, _) = select_all(winning).await;
    Ok((number, won.map_err(failed)?))
}

/// A stream of leaders that must not go back.
struct Observed {
    leaders: Leaders,
    latest: Token,
}

impl Observed {
    fn new(leaders: Leaders) -> Self {
        Self { leaders, latest: Token::ZERO }
    }

    /// Waits until the observer shows the leader with this token. It may fail to read a few times: a server that ends an
    /// idle connection has done nothing wrong.
    async fn until(&mut self, token: Token) -> CheckResult {
        let mut failures = 0;
        while self.latest < token {
            let seen = match self.leaders.next().await {
                Err(error) if error.kind() == ErrorKind::Unavailable && failures < READ_FAILURES_MAX => {
                    failures += 1;
                    continue;
                }
                seen => seen.map_err(failed)?,
            };
            let Some(leader) = seen else { continue };
            ensure!(
                leader.token >= self.latest,
                "an observer of token {} was shown an older leader, with token {}",
                self.latest,
                leader.token
            );
            self.latest = leader.token;
        }
        ensure!(
            self.latest == token,
            "the leader has token {token}, and an observer saw token {}",
            self.latest
        );
        Ok(())
    }
}

async fn cut_off(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let key = trial.key("office");
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let (first, second) = (node(&world, &process, &key), node(&world, &other, &key));
    let mut campaigns = [first.campaign().map_err(failed)?];
    let (_, term) = world.within("an election", next_leader(&mut campaigns)).await??;
    process.wire.cut();
    let mut campaigns = [second.campaign().map_err(failed)?];
    let (_, newer) = world.within("an election", next_leader(&mut campaigns)).await??;
    ensure!(
        !(first.is_leader() && second.is_leader() && first.is_leader()),
        "two leaders at once, with tokens {} and {}",
        term.token(),
        newer.token()
    );
    ensure!(term.check().is_err(), "{term:?} goes on although {newer:?}");
    ensure!(
        newer.token() > term.token(),
        "a leader that was cut off with token {} was followed by token {}",
        term.token(),
        newer.token()
    );
    process.wire.open();
    world.is_kept(newer.lease()).await
}

fn node(world: &World<'_>, process: &Process, key: &Key) -> Election {
    let election = process.coordinator.election(key.as_str()).expect("a key is the name of an election");
    election.ttl(world.ttl)
}

/// Without hints, each costs two thirds of a ttl.
const TERMS: usize = 3;

/// Number of failed reads that an observer may have for each leader.
const READ_FAILURES_MAX: u32 = 3;
