//! Tenure never overwrites a foreign record.

use bytes::Bytes;
use tenure::ErrorKind;
use tenure_store::Key;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::{Trial, excerpt};
use crate::world::process::Process;
use crate::world::{World, failed};

pub(crate) const CLAUSE: Clause = Clause {
    name: "foreign",
    checks: &[
        check!("a value that is not a Tenure record is never overwritten", stays),
        check!("what comes in between a look and a plant is not overwritten", before_a_plant),
        check!("what comes in between a look and a grant is not overwritten", before_a_grant),
    ],
};

async fn stays(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let process = world.process(0).await?;
    for (number, value) in foreign_values(&world, &process).await?.into_iter().enumerate() {
        let key = trial.key(&format!("strange-{number}"));
        let version = trial.create(&key, &value).await?;
        is_corrupt(&world, &process, &key).await?;
        trial.holds(&key, &value, &version).await?;
    }
    Ok(())
}

/// Foreign values of a key: other programs' data, damage, and records of future versions.
async fn foreign_values(world: &World<'_>, process: &Process) -> Result<Vec<Bytes>, Stop> {
    let key = world.trial.key("model");
    let lease = world.granted(process.wants(&key)).await?;
    world.released(lease).await?;
    let ours = world.entry(&key).await?.value;
    let text = String::from_utf8_lossy(&ours).into_owned();
    let next_version = text.replacen(r#""tenure":1"#, r#""tenure":2"#, 1);
    let needs_more = text.replacen('{', r#"{"crit":["quorum"],"#, 1);
    ensure!(next_version != text, "a record without a version: {text}");
    Ok(vec![
        world.trial.value("another program's data"),
        Bytes::from_static(b"-----BEGIN CERTIFICATE-----"),
        Bytes::from_static(b"\x00\xff\xfe not even text \xc3"),
        ours.slice(..ours.len() / 2),
        next_version.into(),
        needs_more.into(),
    ])
}

async fn before_a_plant(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let process = world.process(0).await?;
    let key = trial.key("planted");
    delayed_grant(&world, &process, &key).await?;
    let value = trial.value("came in between");
    let version = trial.create(&key, &value).await?;
    world.deliver_too_late(&process).await?;
    trial.holds(&key, &value, &version).await?;
    process.wire.open();
    is_corrupt(&world, &process, &key).await?;
    trial.holds(&key, &value, &version).await
}

async fn before_a_grant(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let process = world.process(0).await?;
    let key = trial.key("vacant");
    let lease = world.granted(process.wants(&key)).await?;
    world.released(lease).await?;
    delayed_grant(&world, &process, &key).await?;
    let vacant = world.entry(&key).await?;
    let value = trial.value("came in between");
    let version = trial.replace(&key, &value, &vacant.version).await?;
    world.deliver_too_late(&process).await?;
    trial.holds(&key, &value, &version).await?;
    process.wire.open();
    is_corrupt(&world, &process, &key).await?;
    trial.holds(&key, &value, &version).await
}

/// An acquire whose writes are in flight.
async fn delayed_grant(world: &World<'_>, process: &Process, key: &Key) -> CheckResult {
    process.wire.delay_writes();
    let wanting = process.wants(key).wait(world.ttl / 2).acquire();
    match world.within("an acquire", wanting).await? {
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(lease) => fail!("{key} was granted with token {} before it was written", lease.token()),
    }
}

async fn is_corrupt(world: &World<'_>, process: &Process, key: &Key) -> CheckResult {
    let wanting = process.wants(key).wait(world.ttl).acquire();
    match world.within("an acquire", wanting).await? {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(lease) => {
            let token = lease.token();
            fail!(
                "{key} held no Tenure record, and was granted with token {token}; now it holds {}",
                excerpt(&world.entry(key).await?.value)
            )
        }
    }
}
