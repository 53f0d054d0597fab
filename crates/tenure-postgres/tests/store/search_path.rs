//! Databases whose search path puts other functions before PostgreSQL's own.

use futures_util::TryStreamExt;
use tenure_store::{Expect, Key, Prefix, Purpose, Store, Write};
use tenure_testkit::key;

use crate::database::Database;
use crate::{applied, create, replace, scratch_key};

#[tokio::test]
async fn a_clock_before_1970_is_ignored() {
    let Some(database) = Database::on_shared("old_clock") else { return };
    database.sql(
        "CREATE SCHEMA skew; CREATE FUNCTION skew.clock_timestamp() RETURNS timestamptz \
         LANGUAGE sql VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() - interval '100 years' $$; \
         ALTER DATABASE old_clock SET search_path = skew, pg_catalog",
    );
    let (store, key) = (database.store(), key("k"));
    let version = create(&store, &key).await;
    let version = applied(replace(&store, &key, &version, Purpose::Grant { token: 7 }).await);
    let reading = store.get(&key).await.unwrap();
    assert_eq!((reading.time, reading.entry.unwrap().version), (None, version));
}

#[tokio::test]
async fn functions_and_tables_of_the_same_name_as_postgresqls_own_are_not_used() {
    let Some(database) = Database::on_shared("shadowed") else { return };
    database.sql("CREATE SCHEMA shadow");
    for (name, arguments) in [
        ("set_config", "text, text, boolean"),
        ("current_setting", "text"),
        ("current_setting", "text, boolean"),
        ("pg_notify", "text, text"),
        ("pg_is_in_recovery", ""),
        ("pg_backend_pid", ""),
        ("pg_postmaster_start_time", ""),
        ("pg_advisory_xact_lock", "bigint"),
        ("pg_logical_emit_message", "boolean, text, text"),
        ("pg_walfile_name", "pg_lsn"),
        ("pg_current_wal_lsn", ""),
        ("left", "text, integer"),
    ] {
        let body = "LANGUAGE plpgsql AS $$ BEGIN RAISE 'the wrong function'; END $$";
        database.sql(&format!("CREATE FUNCTION shadow.{name}({arguments}) RETURNS text {body}"));
    }
    for table in ["pg_class", "pg_attribute", "pg_namespace", "pg_type", "pg_index", "pg_stat_replication"] {
        database.sql(&format!("CREATE TABLE shadow.{table} ()"));
    }
    database.sql("ALTER DATABASE shadowed SET search_path = shadow, pg_catalog");
    let (store, job) = (database.store(), key("job"));
    let version = create(&store, &job).await;
    let version = applied(replace(&store, &job, &version, Purpose::Grant { token: 7 }).await);
    let version = applied(replace(&store, &job, &version, Purpose::Renewal).await);
    applied(replace(&store, &job, &version, Purpose::Release).await);
    let granted = Write::new("first", Expect::Absent).for_purpose(Purpose::Grant { token: 1 });
    applied(store.write(&key("granted"), granted).await);
    assert!(store.get(&job).await.unwrap().entry.is_some());
    let listed: Vec<Key> = store.list(&Prefix::all()).try_collect().await.unwrap();
    assert_eq!(listed, [key("granted"), job]);
    store.risks().await.unwrap();
    let own = scratch_key();
    create(&store, &own).await;
    store.scratch().unwrap().sweep(&own).await.unwrap();
    assert!(store.get(&own).await.unwrap().entry.is_none());
}
