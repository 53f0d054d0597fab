//! Renewals: only the owner renews, and only its own record.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use tenure::record::{self, Nonce, Record};
use tenure::{Error, ErrorKind, Holder, Lease, Token};
use tenure_store::{Key, Version};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;
use crate::world::{World, are_apart, failed, is_lost, is_newer};

pub(crate) const CLAUSE: Clause = Clause {
    name: "renewal",
    checks: &[
        check!("while the owner renews, others wait in vain and change nothing", others_wait_in_vain),
        check!(
            "an owner whose record was replaced loses at its next renewal and overwrites nothing",
            replaced
        ),
    ],
};

async fn others_wait_in_vain(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let owner = world.process(0).await?;
    let (waiting, asking) = (world.process(1).await?, world.process(2).await?);
    for attempt in 1..=ATTEMPTS {
        let key = trial.key(&format!("kept-{attempt}"));
        let lease = world.granted(owner.wants(&key)).await?;
        let granted = world.record(&key).await?;
        let mut wait = Box::pin(waiting.wants(&key).wait(ASKS * world.ttl / 8).acquire());
        // The first poll starts it, and its keeper continues.
        let at_once = wait.as_mut().now_or_never();
        // Both between renewals and right after them.
        for _ in 0..ASKS {
            let asked = asking.wants(&key).try_acquire();
            must_not_be_granted(world.within("an attempt", asked).await?, &lease)?;
            world.pass(world.ttl / 8).await;
        }
        let answer = match at_once {
            Some(answer) => answer,
            None => world.within("an acquire", wait).await?,
        };
        must_not_be_granted(answer, &lease)?;
        if lease.check().is_ok() {
            world.is_recorded(&lease).await?;
            return renewed(&granted, &world.record(&key).await?);
        }
        // The lease was lost because the machine is too busy. That is not the subject of this check.
        trial.note(format!("the owner could not renew in time in {attempt} attempts"));
    }
    fail!("the owner could not renew in time in {ATTEMPTS} attempts: use a longer ttl")
}

/// Another contender must not be granted the owner's lease. (If the owner has lost it, it noticed in time.)
fn must_not_be_granted(answer: Result<Lease, Error>, lease: &Lease) -> CheckResult {
    match answer {
        Ok(taken) => {
            are_apart(&taken, lease)?;
            is_newer(&taken, lease.token(), "from the owner to another")
        }
        Err(error) if matches!(error.kind(), ErrorKind::Held | ErrorKind::Unavailable) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn renewed(granted: &Record, now: &Record) -> CheckResult {
    ensure!(
        now.term == granted.term && now.holder == granted.holder && now.ttl == granted.ttl,
        "the record of a term that was only renewed has changed: from {granted:?} to {now:?}"
    );
    ensure!(now.sequence > granted.sequence, "the owner of {} did not renew", granted.token);
    Ok(())
}

/// Replaced by a program that does not use leases, and by one whose grant came from elsewhere.
async fn replaced(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let owner = world.process(0).await?;
    for (name, replacement) in [("by-a-stranger", Replacement::Junk), ("by-a-grant", Replacement::Grant)] {
        let key = trial.key(name);
        let lease = world.granted(owner.wants(&key).manual()).await?;
        let (value, version) = replace(&world, &key, replacement).await?;
        let error = world.within("a renewal", lease.renew()).await?.err();
        ensure!(
            error.as_ref().is_some_and(|error| error.kind() == ErrorKind::Lost),
            "a renewal over a record that another writer had replaced: {}",
            error.map_or("it succeeded".to_owned(), |error| error.to_string())
        );
        is_lost(&lease, "after its record was replaced")?;
        drop(lease);
        world.pass(world.step()).await;
        trial.holds(&key, &value, &version).await?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Replacement {
    Junk,
    Grant,
}

async fn replace(world: &World<'_>, key: &Key, replacement: Replacement) -> Result<(Bytes, Version), Stop> {
    let trial = world.trial;
    let value = match replacement {
        Replacement::Junk => trial.value("not a record"),
        Replacement::Grant => {
            let record = world.record(key).await?;
            ensure!(record.is_held(), "{key} was granted, and the store says that it has no holder");
            record::encode(&grant_over(&record))
        }
    };
    let version = trial.replace(key, &value, &world.entry(key).await?.version).await?;
    Ok((value, version))
}

/// The record that a successor would have written.
fn grant_over(record: &Record) -> Record {
    let nonce = Nonce::from_bits(record.nonce.to_bits() ^ 1);
    let mut grant = record.clone();
    (grant.term, grant.nonce) = (nonce, nonce);
    grant.token = record.token.next().unwrap_or(Token::MAX);
    grant.holder = Some(Arc::new(Holder::new("successor").expect("a name without surprises")));
    grant.sequence += 1;
    grant
}

/// Number of attempts, eight per ttl.
const ASKS: u32 = 16;

/// A machine that stops a keeper for most of a ttl this many times in a row is not suitable for this check.
const ATTEMPTS: usize = 3;
