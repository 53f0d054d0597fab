//! Tables and rights.

use futures_util::{StreamExt, TryStreamExt};
use tenure::Coordinator;
use tenure_store::{Expect, Key, Prefix, Store};
use tenure_testkit::key;

use crate::database::{Database, open};
use crate::{create, refusal};

/// The statements in the documentation are enough for a role that may create nothing.
#[tokio::test]
async fn the_least_rights_of_the_documentation_are_enough() {
    let Some(database) = Database::on_shared("least") else { return };
    let page = include_str!("../../../../docs/stores/postgres.md");
    let rights =
        page.split("```sql").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has them");
    database.sql("CREATE ROLE app LOGIN");
    let builder = database.builder().user("app");
    let stranger = open(&builder);
    assert!(stranger.get(&key("k")).await.unwrap().entry.is_none(), "a read creates nothing");
    let sentence = refusal(stranger.put(&key("k"), "x".into(), Expect::Absent).await);
    assert!(
        sentence.contains("may not create them") && sentence.contains("`tenure store init --print`"),
        "{sentence}"
    );

    let printed = builder.creation_statements().replace('"', "");
    assert!(printed.ends_with(rights.trim_start()), "the command prints the same: {printed}");
    database.sql(&database.builder().creation_statements());
    let sentence = refusal(open(&builder).get(&key("k")).await);
    assert!(sentence.contains("the role \"app\" may not use the tables"), "{sentence}");
    database.sql(rights);
    open(&builder).create_tables().await.expect("it has nothing to create");
    let coordinator = Coordinator::connect(open(&builder)).await.unwrap();
    let lease = coordinator.lease("job").unwrap().without_witness().acquire().await.unwrap();
    lease.release().await.unwrap();
    assert_eq!(coordinator.observe_all(&Prefix::all()).await.unwrap().len(), 1);
    // Its connection was opened before the tables existed.
    create(&stranger, &key("k")).await;
}

#[tokio::test]
async fn the_tables_are_created_by_the_first_write_also_by_many_at_once_and_again_after_a_drop() {
    let Some(database) = Database::on_shared("first_use") else { return };
    let stores: Vec<_> =
        (0..12).map(|_| open(&database.builder().schema("my locks").table("Jobs"))).collect();
    let keys: Vec<_> = (0..12).map(|number| key(&format!("k{number}"))).collect();
    let puts = stores.iter().zip(&keys).map(|(store, key)| create(store, key));
    futures_util::future::join_all(puts).await;
    assert_eq!(database.sql("SELECT count(*) FROM \"my locks\".\"Jobs\""), "12");
    assert_eq!(database.sql("SELECT count(*) FROM \"my locks\".\"Jobs_token\""), "0");
    // Some of these connections were opened before the schema existed, and this one afterwards.
    let late = open(&database.builder().schema("my locks").table("Jobs"));
    assert!(late.get(&keys[0]).await.unwrap().entry.is_some());
    database.sql("DROP SCHEMA \"my locks\" CASCADE");
    create(&late, &keys[0]).await;
    database.sql("DROP SCHEMA \"my locks\" CASCADE");
    let listed: Vec<Key> = stores[0].list(&Prefix::all()).try_collect().await.unwrap();
    assert!(listed.is_empty() && stores[0].get(&keys[0]).await.unwrap().entry.is_none());
    create(&stores[0], &keys[0]).await;
}

#[tokio::test]
async fn a_table_of_another_shape_is_left_alone() {
    let Some(database) = Database::on_shared("shapes") else { return };
    let key = key("k");
    database.sql("CREATE SCHEMA tenure; CREATE TABLE tenure.record (key text PRIMARY KEY, body jsonb)");
    let sentence = refusal(database.store().put(&key, "x".into(), Expect::Absent).await);
    assert!(sentence.contains("lacks the columns") && sentence.contains("table="), "{sentence}");
    database.sql("DROP TABLE tenure.record");
    create(&database.store(), &key).await;
    database.sql("ALTER TABLE tenure.record SET UNLOGGED");
    let sentence = refusal(database.store().get(&key).await);
    assert!(sentence.contains("is unlogged"), "{sentence}");
    database.sql("ALTER TABLE tenure.record SET LOGGED; ALTER TABLE tenure.record ENABLE ROW LEVEL SECURITY");
    let sentence = refusal(database.store().get(&key).await);
    assert!(sentence.contains("row-level security"), "{sentence}");
    // A grant would be applied, and its token would be lost.
    database.sql(
        "ALTER TABLE tenure.record DISABLE ROW LEVEL SECURITY; \
         CREATE FUNCTION drop_write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
         CREATE TRIGGER t BEFORE INSERT OR UPDATE ON tenure.token FOR EACH ROW EXECUTE FUNCTION drop_write()",
    );
    let sentence = refusal(database.store().get(&key).await);
    assert!(sentence.contains("\"token\" has a rule, or a trigger before each row"), "{sentence}");
    database.sql(
        "DROP TRIGGER t ON tenure.token; CREATE RULE r AS ON UPDATE TO tenure.record DO INSTEAD NOTHING",
    );
    let sentence = refusal(database.store().get(&key).await);
    assert!(sentence.contains("\"record\" has a rule"), "{sentence}");
    database.sql("DROP RULE r ON tenure.record; ALTER TABLE tenure.record DROP CONSTRAINT record_pkey");
    let sentence = refusal(database.store().get(&key).await);
    assert!(sentence.contains("\"record\" has no unique index on key"), "{sentence}");
    database.sql(
        "ALTER TABLE tenure.record ADD PRIMARY KEY (key); ALTER TABLE tenure.record ADD COLUMN note text; \
         CREATE TRIGGER t AFTER UPDATE ON tenure.record FOR EACH ROW EXECUTE FUNCTION drop_write()",
    );
    database.store().get(&key).await.expect("what can do no harm is allowed");
}

#[tokio::test]
async fn every_legal_key_comes_back_and_no_character_is_a_wildcard() {
    let Some(database) = Database::on_shared("names") else { return };
    let store = database.store();
    let mut names: Vec<String> = [
        "a_b",
        "a%b",
        "axb",
        "a\\b",
        "Ünïcødé/键/🔑",
        "'q'",
        "\"q\"",
        "$1",
        "é",
        "e\u{301}",
        "\u{10ffff}",
        "a/b",
        "a",
        "a0",
        "a-b",
    ]
    .map(str::to_owned)
    .into();
    names.push("x".repeat(Key::MAX_BYTES));
    for name in &names {
        create(&store, &key(name)).await;
        assert!(store.get(&key(name)).await.unwrap().entry.is_some(), "{name}");
    }
    let listed = async |prefix: &str| {
        let prefix = Prefix::parse(prefix).unwrap();
        let mut keys: Vec<_> = store.list(&prefix).map(|key| key.unwrap().to_string()).collect().await;
        keys.sort();
        keys
    };
    names.sort();
    assert_eq!(listed("").await, names);
    assert_eq!(listed("a").await, ["a", "a/b"]);
    assert_eq!(listed("a_b").await, ["a_b"]);
    assert_eq!(listed("a%b").await, ["a%b"]);
}
