//! Racing grants: one of them is applied, and the row of the token then has its token.

use std::sync::{Arc, Mutex};

use tenure_postgres::{Postgres, PostgresBuilder};
use tenure_store::{BoxFuture, Expect, Key, Purpose, Put, Store, StoreError, Version, Write};
use tenure_testkit::{PgBouncer, key, quota, race};
use tokio_postgres::Client;

use crate::create;
use crate::database::{Database, open};
use crate::fence::user;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_racing_grants_one_is_applied_and_the_row_has_its_token() {
    let Some(database) = Database::on_shared("grants") else { return };
    let direct = database.builder_at(database.server().address());
    Grants::on(&database, &direct, "direct").await.race(quota(100, 1_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn through_a_pooler_one_racing_grant_is_applied_also_if_transactions_are_serializable() {
    let Some(database) = Database::on_shared("pooled_grants") else { return };
    for isolation in ["read committed", "serializable"] {
        database
            .sql(&format!("ALTER DATABASE pooled_grants SET default_transaction_isolation = '{isolation}'"));
        // Its connections to the server begin with this setting.
        let Some(pooler) = PgBouncer::start_or_skip(database.server()) else { return };
        let mut grants = Grants::on(&database, &database.builder_at(pooler.address()), isolation).await;
        grants.race(quota(10, 200)).await;
        let (sent, sent_again) = (grants.sent, grants.writes() - grants.sent);
        println!("{isolation}: {sent} grants, of which PostgreSQL rolled {sent_again} back");
        assert_eq!(sent_again > 0, isolation == "serializable", "{sent_again}");
    }
}

/// A user deletes the record during each race. So a grant of the old record and a grant that creates a record may both be
/// applied, one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grant_and_a_grant_that_creates_its_record_leave_the_token_of_the_later_one() {
    let Some(database) = Database::on_shared("created_grants") else { return };
    let direct = database.builder_at(database.server().address());
    let mut grants = Grants::on(&database, &direct, "deleted").await;
    let (mut replaced, mut created) = (0, 0);
    for _ in 0..quota(40, 500) {
        let [replacing, creating] = grants.round_with_a_deletion().await;
        (replaced, created) = (replaced + replacing, created + creating);
    }
    assert!(replaced > 0 && created > 0, "{replaced} replaced a record, and {created} created one");
}

/// Contenders for one lease, each with its own connections, and a user of the database.
struct Grants {
    stores: Vec<Postgres>,
    user: Client,
    key: Key,
    version: Version,
    /// The greatest token that a contender has used.
    token: u64,
    /// Number of grants in all races.
    sent: u64,
    /// Writes of the stores before the races.
    before: u64,
}

/// A grant that was applied.
#[derive(Debug, Clone)]
struct Win {
    version: Version,
    token: u64,
}

impl Grants {
    async fn on(database: &Database, builder: &PostgresBuilder, name: &str) -> Self {
        let (stores, key): (Vec<_>, _) = ((0..RACERS).map(|_| open(builder)).collect(), key(name));
        let version = create(&stores[0], &key).await;
        let mut grants =
            Self { stores, user: user(database).await, key, version, token: 0, sent: 0, before: 0 };
        grants.before = grants.writes();
        grants
    }

    /// Lets all contenders grant themselves the lease, this many times with equal and this many times with different
    /// tokens.
    async fn race(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.round(|_| 1).await;
            self.round(|racer| 1 + racer).await;
        }
    }

    async fn round(&mut self, above: impl Fn(u64) -> u64) {
        let grants =
            (0..RACERS).map(|racer| (Expect::Version(self.version.clone()), self.token + above(racer)));
        let wins = self.run(grants.collect(), None).await;
        let [Win { version, token }] = wins.as_slice() else {
            panic!("several were applied, or none: {wins:?}")
        };
        assert_eq!(self.rows().await, (Some(version.as_str().to_owned()), Some(*token)), "{wins:?}");
        self.version = version.clone();
    }

    /// Returns the number of grants that replaced the record, and of those that created it.
    async fn round_with_a_deletion(&mut self) -> [usize; 2] {
        let (old, before) = (self.version.clone(), self.token);
        let grants = (0..RACERS).map(|racer| {
            let expect = if racer % 2 == 0 { Expect::Version(old.clone()) } else { Expect::Absent };
            (expect, before + 1 + racer)
        });
        let deletion = format!("DELETE FROM tenure.record WHERE key = '{}'", self.key);
        let wins = self.run(grants.collect(), Some(&deletion)).await;
        let (replaced, created): (Vec<_>, Vec<_>) =
            wins.iter().partition(|win| (win.token - before) % 2 == 1);
        assert!(replaced.len() <= 1 && created.len() <= 1, "{wins:?}");
        let (version, token) = self.rows().await;
        let greatest = wins.iter().map(|win| win.token).max();
        assert!(greatest.is_none() || token == greatest, "{token:?} is not that of {wins:?}");
        let last = wins.iter().find(|win| Some(win.token) == greatest);
        match &version {
            Some(version) if version == old.as_str() => unreachable!("it was deleted"),
            Some(version) => assert_eq!(Some(version.as_str()), last.map(|last| last.version.as_str())),
            None => assert!(created.is_empty(), "only the old record was deleted: {wins:?}"),
        }
        self.version = match version {
            Some(version) => Version::new(version),
            None => create(&self.stores[0], &self.key).await,
        };
        [replaced.len(), created.len()]
    }

    /// Sends these grants, each from its own task, and the statement of a user in the middle of them. Returns those that
    /// were applied.
    async fn run(&mut self, grants: Vec<(Expect, u64)>, deletion: Option<&str>) -> Vec<Win> {
        self.sent += grants.len() as u64;
        self.token = grants.iter().map(|(_, token)| *token).max().expect("there are some");
        let (wins, deletes) = (Arc::new(Mutex::new(Vec::new())), deletion.is_some());
        let racers = self.stores.iter().zip(grants).map(|(store, (expect, token))| {
            let (store, key, wins) = (store.clone(), self.key.clone(), Arc::clone(&wins));
            let write = Write::new("granted", expect).for_purpose(Purpose::Grant { token });
            let grant = async move {
                match store.write(&key, write).await {
                    Ok(Put::Applied(applied)) => {
                        wins.lock().unwrap().push(Win { version: applied.version, token });
                    }
                    // A busy machine may keep the row of the token locked for a second.
                    Ok(Put::Conflict(_)) | Err(StoreError::Throttled(_)) => {}
                    // The deletion took the record of a greater token away.
                    Err(StoreError::Refused(refused))
                        if deletes && token_is_smaller(&refused.to_string()) => {}
                    other => panic!("{other:?}"),
                }
            };
            Box::pin(grant) as BoxFuture<'static, ()>
        });
        let raced = race(racers.collect());
        if let Some(deletion) = deletion {
            self.user.batch_execute(deletion).await.unwrap();
        }
        raced.await;
        Arc::into_inner(wins).expect("all racers have ended").into_inner().unwrap()
    }

    /// The version of the record, and the token in its row.
    async fn rows(&self) -> (Option<String>, Option<u64>) {
        let rows = "SELECT (SELECT server || ':' || version FROM tenure.record WHERE key = $1), \
                    (SELECT token FROM tenure.token WHERE key = $1)";
        let row = self.user.query_one(rows, &[&self.key.as_str()]).await.unwrap();
        (row.get(0), row.get::<_, Option<i64>>(1).map(|token| token.try_into().unwrap()))
    }

    /// Statements that the races have sent, with those that were sent again.
    fn writes(&self) -> u64 {
        self.stores.iter().map(|store| store.calls().writes).sum::<u64>() - self.before
    }
}

/// True for the refusal of a grant whose token is not greater than the one in the row.
fn token_is_smaller(sentence: &str) -> bool {
    sentence.contains("was granted with token")
}

const RACERS: u64 = 64;
