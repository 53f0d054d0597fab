//! The property test of every fence: many writers with old and new tokens on a real server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_fence::suite::{self, Counts, Plan};
use tenure_store::Key;
use tenure_testkit::{PgBouncer, PostgresKind, PostgresSetup, quota};

use crate::database::Database;
use crate::install;
use crate::ledger::{Check, FaultCounts, Faults, Ledger, TABLES};

#[tokio::test]
async fn writers_on_a_holders_pool_keep_the_order_of_tokens() {
    let Some(database) = ready("suite").await else { return };
    let ran =
        run(&database, database.server().address(), Check::Fence, Faults::default(), quota(3, 60)).await;
    assert!(ran.counts.admitted > 1_500 && ran.counts.refused > 1_000, "{}", ran.counts);
}

#[tokio::test]
async fn writers_at_all_isolation_levels_with_rollbacks_and_killed_connections_keep_the_order_of_tokens() {
    let Some(database) = ready("suite_faults").await else { return };
    let ran = run(&database, database.server().address(), Check::Fence, ALL_FAULTS, quota(3, 60)).await;
    ran.had_all_faults();
}

#[tokio::test]
async fn writers_whose_lease_is_in_the_same_database_keep_the_order_of_tokens() {
    let Some(database) = ready("suite_granted").await else { return };
    let faults = Faults { mixed_isolation: true, ..Faults::default() };
    let ran = run(&database, database.server().address(), Check::Granted, faults, quota(2, 30)).await;
    assert!(ran.counts.refused > 500, "{}", ran.counts);
}

#[tokio::test]
async fn writers_through_a_pooler_keep_the_order_of_tokens() {
    let Some(database) = ready("suite_pooled").await else { return };
    let Some(pooler) = PgBouncer::start_or_skip(database.server()) else { return };
    let faults = Faults { kills: false, ..ALL_FAULTS };
    let ran = run(&database, pooler.address(), Check::Fence, faults, quota(2, 30)).await;
    assert!(ran.counts.refused > 500, "{}", ran.counts);
}

#[tokio::test]
async fn writers_on_the_newest_postgresql_keep_the_order_of_tokens() {
    let newest = PostgresSetup::new().kind(PostgresKind::Newest);
    let Some(database) = Database::alone_with(newest, "suite_newest") else { return };
    prepare(&database).await;
    run(&database, database.server().address(), Check::Fence, ALL_FAULTS, quota(2, 30))
        .await
        .had_all_faults();
    let faults = Faults { mixed_isolation: true, ..Faults::default() };
    run(&database, database.server().address(), Check::Granted, faults, quota(1, 15)).await;
}

/// The suite can fail.
#[tokio::test]
async fn an_unlocked_read_before_the_write_is_found_by_the_suite() {
    let Some(database) = ready("suite_unlocked").await else { return };
    for seed in 0..20 {
        let ledger = ledger(&database, database.server().address(), Check::Unlocked, Faults::default(), seed);
        if let Err(found) = suite::run(&ledger, plan(seed)).await {
            println!("seed {seed}: {found}");
            return;
        }
    }
    panic!("no seed found the fence that only hopes");
}

/// The result of some runs on one database.
pub(crate) struct Ran {
    pub(crate) counts: Counts,
    faults: Arc<FaultCounts>,
}

impl Ran {
    fn had_all_faults(&self) {
        let FaultCounts { rollbacks, kills, repeated, .. } = &*self.faults;
        for counter in [rollbacks, kills, repeated] {
            assert!(counter.load(Ordering::Relaxed) > 8, "{:?}", self.faults);
        }
        // The moment of a kill decides whether the answer of its write is clear.
        assert!(self.counts.refused > 500 && self.counts.unknown > 2, "{}", self.counts);
    }
}

/// Creates a database with the fences and the tables of the ledger.
pub(crate) async fn ready(name: &'static str) -> Option<Database> {
    let database = Database::on_shared(name)?;
    prepare(&database).await;
    Some(database)
}

async fn prepare(database: &Database) {
    install(database).await.batch_execute(TABLES).await.unwrap();
}

/// Runs plans with different seeds, each on a resource and a lease of its own.
async fn run(database: &Database, address: SocketAddr, check: Check, faults: Faults, seeds: u64) -> Ran {
    let mut ran = Ran { counts: Counts::default(), faults: Arc::default() };
    for seed in 0..seeds {
        let ledger =
            Ledger { counts: Arc::clone(&ran.faults), ..ledger(database, address, check, faults, seed) };
        let counts =
            suite::run(&ledger, plan(seed)).await.unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        ran.counts.admitted += counts.admitted;
        ran.counts.refused += counts.refused;
        ran.counts.unknown += counts.unknown;
        ran.counts.crashes += counts.crashes;
    }
    if !faults.kills {
        let clear = ran.counts.admitted + ran.counts.refused;
        assert_eq!(
            clear,
            seeds * WRITERS as u64 * u64::from(CALLS),
            "no call failed for another reason: {}",
            ran.counts
        );
    }
    println!("{} {check:?}: {}, {:?}", database.name(), ran.counts, ran.faults);
    ran
}

fn ledger(database: &Database, address: SocketAddr, check: Check, faults: Faults, seed: u64) -> Ledger<'_> {
    Ledger { database, address, resource: format!("{check:?} {seed}"), check, faults, counts: Arc::default() }
}

pub(crate) fn plan(seed: u64) -> Plan {
    Plan::new(seed)
        .writers(WRITERS)
        .calls(CALLS)
        .keeps_all()
        .name(Key::parse(&format!("suite/{seed}")).unwrap())
}

const ALL_FAULTS: Faults = Faults { mixed_isolation: true, rollbacks: true, kills: true };

const WRITERS: usize = 8;
const CALLS: u32 = 250;
