//! The store's own clock: a floor for tokens, or the age of a version.

use std::time::Duration;

use tenure_store::{Expect, Key, Put, StoreClock, StoreTime};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "clock",
    checks: &[
        check!("every answer has the store's time, in this age", time_is_told),
        check!("the store's time does not go back", time_goes_on),
        check!("the store's time is later after a tick", time_ticks),
    ],
};

pub(crate) const AGES: Clause = Clause {
    name: "ages",
    checks: &[
        check!("the age of a version grows while it is unchanged", age_grows),
        check!("a new version is young again", age_begins_anew),
    ],
};

async fn time_is_told(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.clock >= StoreClock::Floors, "a clock")?;
    let key = trial.key("told");
    // A missing key is the most important case: the process that plants it has no other source of time.
    plausible(trial.reading(trial.writer(), &key).await?.time, "a read of a missing key")?;
    let value = trial.value("first");
    trial.may_write(&value)?;
    let created = trial.put(trial.writer(), &key, &value, &Expect::Absent).await?;
    plausible(time_of(&created), "a create")?;
    let reading = trial.reading(trial.other(), &key).await?;
    plausible(reading.time, "a read")?;
    let Some(entry) = reading.entry else { fail!("what was created is not there") };
    let expect = Expect::Version(entry.version);
    let replaced = trial.put(trial.writer(), &key, &trial.value("second"), &expect).await?;
    plausible(time_of(&replaced), "a replace")
}

async fn time_goes_on(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.clock >= StoreClock::Floors, "a clock")?;
    let key = trial.key("goes-on");
    let mut version = trial.create(&key, &trial.value("first")).await?;
    let mut latest: Option<StoreTime> = None;
    for number in 0..trial.repeats() {
        let read = trial.reading(&*trial.connection(number), &key).await?.time;
        let expect = Expect::Version(version.clone());
        let put = trial.put(&*trial.connection(number + 1), &key, &trial.value("next"), &expect).await?;
        for time in [read, time_of(&put)].into_iter().flatten() {
            let before = latest.map_or(0, StoreTime::as_micros);
            let back = Duration::from_micros(before.saturating_sub(time.as_micros()));
            ensure!(back <= STEP_BACK_MAX, "the store's time went back by {back:?}");
            latest = latest.max(Some(time));
        }
        let Put::Applied(applied) = put else { fail!("a replace of the current version was a conflict") };
        version = applied.version;
    }
    Ok(())
}

/// After a deletion, the first grant waits for a later time. It waits for ever if the tick is longer than declared, and
/// repeats a token if the clock is declared to count writes and does not.
async fn time_ticks(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.clock >= StoreClock::Floors, "a clock")?;
    let key = trial.key("ticks");
    let tick = trial.promises.clock_tick;
    let mut version = trial.create(&key, &trial.value("first")).await?;
    for _ in 0..if tick.is_zero() { trial.repeats() } else { 1 } {
        let before = trial.reading(trial.writer(), &key).await?.time;
        if tick.is_zero() {
            let expect = Expect::Version(version.clone());
            let put = trial.put(trial.writer(), &key, &trial.value("next"), &expect).await?;
            let Put::Applied(applied) = put else { fail!("a replace of the current version was a conflict") };
            ensure!(
                applied.time > before,
                "it is declared to count writes, and shows no later time after one"
            );
            version = applied.version;
            continue;
        }
        let (mut after, mut ticks) = (before, 0);
        while after <= before && ticks < TICKS_MAX {
            trial.harness.pause(tick + tick / 50).await;
            after = trial.reading(trial.writer(), &key).await?.time;
            ticks += 1;
        }
        ensure!(after > before, "its tick is {tick:?}, and it shows no later time after {ticks} ticks");
    }
    Ok(())
}

/// The age decides when a holder is overdue. An age that jumps would end the leases of live holders. The wall clock of
/// a server jumps at a failover or when it is set.
async fn age_grows(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.clock >= StoreClock::Ages, "ages")?;
    let key = trial.key("grows");
    trial.create(&key, &trial.value("first")).await?;
    let before = oldest(trial, &key, Duration::ZERO).await?;
    let (mut latest, mut waited, mut wait) = (before, Duration::ZERO, AGE_WAIT);
    for _ in 0..AGE_TRIES {
        trial.harness.pause(wait).await;
        latest = oldest(trial, &key, latest).await?;
        waited += wait;
        wait *= 2;
        // A tenth for clocks of different speed, which the lease itself allows for.
        if latest - before >= waited * 9 / 10 {
            return Ok(());
        }
    }
    let grown = latest - before;
    let least = (waited * 9 / 10).saturating_sub(WHOLE_SECONDS);
    ensure!(grown >= least, "in {waited:?} the age of a version grew by {grown:?}");
    Ok(())
}

/// Reads an unchanged version several times. Returns the last of its ages, which must not decrease.
async fn oldest(trial: &Trial<'_>, key: &Key, mut latest: Duration) -> Result<Duration, Stop> {
    for number in 0..AGE_LOOKS {
        let age = age(trial, number, key).await?;
        ensure!(age >= latest, "an unchanged version was {latest:?} old, and then {age:?}");
        latest = age;
    }
    Ok(latest)
}

async fn age_begins_anew(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.clock >= StoreClock::Ages, "ages")?;
    let key = trial.key("anew");
    let mut version = trial.create(&key, &trial.value("first")).await?;
    let mut wait = AGE_WAIT;
    let (mut old, mut young) = (Duration::ZERO, Duration::ZERO);
    // The write and the read take time too: on a busy machine the waits get longer.
    for number in 0..AGE_TRIES {
        trial.harness.pause(wait).await;
        old = age(trial, number, &key).await?;
        version = trial.replace(&key, &trial.value("next"), &version).await?;
        young = age(trial, number, &key).await?;
        if young < old {
            return Ok(());
        }
        wait *= 2;
    }
    fail!("a version was {old:?} old, was replaced, and the new one was {young:?} old")
}

/// Lower bound of the age. A store whose clock has whole seconds returns no age below one second.
async fn age(trial: &Trial<'_>, connection: usize, key: &Key) -> Result<Duration, Stop> {
    let entry = trial.read(&*trial.connection(connection), key).await?;
    Ok(entry.and_then(|entry| entry.age).unwrap_or_default())
}

fn time_of(put: &Put) -> Option<StoreTime> {
    match put {
        Put::Applied(applied) => applied.time,
        Put::Conflict(_) => None,
    }
}

fn plausible(time: Option<StoreTime>, of: &str) -> CheckResult {
    let Some(time) = time else { fail!("a clock is promised, and the answer to {of} has no time") };
    let micros = time.as_micros();
    ensure!((YEAR_2020..YEAR_2200).contains(&micros), "the answer to {of} says that it is {time} after 1970");
    Ok(())
}

/// Several front ends have several clocks, and the `Date` of HTTP has whole seconds. Tokens tolerate this, because they
/// also grow by one.
const STEP_BACK_MAX: Duration = Duration::from_secs(2);

/// The next read may be answered by a front end that is behind.
const TICKS_MAX: u32 = 4;

/// Number of consecutive reads of an age.
const AGE_LOOKS: usize = 12;

/// Long compared with a tick of a fine clock, short compared with a test.
const AGE_WAIT: Duration = Duration::from_millis(100);

/// An age is the difference of two times, and must not be too large: if both have whole seconds, it may be nearly two
/// seconds too small.
const WHOLE_SECONDS: Duration = Duration::from_secs(2);

/// Doubling: the last wait is 3.2 s, and all of them together 6.3 s.
const AGE_TRIES: usize = 6;

/// The library ignores times outside this range, so a store that promises a clock must be inside.
const YEAR_2020: u64 = 1_577_836_800_000_000;
const YEAR_2200: u64 = 7_258_118_400_000_000;
