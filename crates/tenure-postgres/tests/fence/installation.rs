//! The migration, and databases that lack it or a part of it.

use futures_util::future::join_all;
use tenure_fence::{FenceError, Seal};
use tenure_postgres::{FenceSchema, PostgresFence};
use tenure_store::Reason;

use crate::database::Database;
use crate::{fenced, install, refused, role_at, token, user};

#[tokio::test]
async fn the_migration_runs_again_and_by_many_at_once_and_keeps_the_marks() {
    let Some(database) = Database::on_shared("migrated") else { return };
    let clients = join_all((0..8).map(|_| user(&database))).await;
    join_all(clients.iter().map(async |client| FenceSchema::usual().install(client).await.unwrap())).await;
    PostgresFence::new("orders").seal_on(&clients[0]).seal(&token("billing=7")).await.unwrap();
    join_all(clients.iter().map(async |client| FenceSchema::usual().install(client).await.unwrap())).await;
    assert_eq!(database.sql("SELECT resource, lease, token FROM tenure.fence"), "orders|billing|7");
    assert_eq!(database.sql("SELECT tenure.fence_version()"), FenceSchema::VERSION.to_string());
    // A tool may run it in a transaction of its own, and psql statement by statement.
    database.sql(&format!("BEGIN; {} COMMIT", FenceSchema::usual().migration()));
    database.sql(&FenceSchema::named("by hand").unwrap().migration());
    clients[0].batch_execute("SELECT \"by hand\".fence('orders', 'payroll', 3)").await.unwrap();
}

#[tokio::test]
async fn a_newer_migration_is_not_undone() {
    let Some(database) = Database::on_shared("newer") else { return };
    let client = install(&database).await;
    database.sql("CREATE OR REPLACE FUNCTION tenure.fence_version() RETURNS int LANGUAGE sql AS 'SELECT 2'");
    let refused = FenceSchema::usual().install(&client).await.unwrap_err().to_string();
    assert!(refused.contains("have version 2, and this migration has version 1"), "{refused}");
    assert!(refused.contains("Run the migration of the newer release"), "{refused}");
}

#[tokio::test]
async fn a_table_of_another_shape_is_left_alone() {
    let Some(database) = Database::on_shared("fence_shapes") else { return };
    let client = user(&database).await;
    let own = "CREATE TABLE tenure.fence (resource text COLLATE \"C\" PRIMARY KEY, lease text, token bigint, at timestamptz)";
    for (table, flaw) in [
        ("CREATE TABLE tenure.fence (id int, wire text)", "has other columns"),
        (
            "CREATE VIEW tenure.fence AS SELECT ''::text AS resource, ''::text AS lease, 1::bigint AS token, now() AS at",
            "is not an ordinary",
        ),
        (&own.replace("TABLE", "UNLOGGED TABLE"), "is not an ordinary, logged table"),
        (&own.replace("PRIMARY KEY", ""), "has no unique index on resource"),
        (&format!("{own}; CREATE RULE r AS ON UPDATE TO tenure.fence DO INSTEAD NOTHING"), "has a rule"),
        (&format!("{own}; ALTER TABLE tenure.fence ENABLE ROW LEVEL SECURITY"), "row-level security"),
    ] {
        client.batch_execute(&format!("CREATE SCHEMA tenure; {table}")).await.unwrap();
        let refused = FenceSchema::usual().install(&client).await.unwrap_err();
        assert!(matches!(refused, FenceError::Refused { reason: Reason::Invalid, .. }), "{refused:?}");
        assert!(refused.to_string().contains(flaw), "{refused}");
        assert_eq!(
            database.sql("SELECT count(*) FROM pg_proc WHERE proname = 'fence'"),
            "0",
            "nothing is installed"
        );
        client.batch_execute("DROP SCHEMA tenure CASCADE").await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_migration_and_a_changed_table_are_refused_with_the_next_step() {
    let Some(database) = Database::on_shared("not_migrated") else { return };
    let mut client = user(&database).await;
    let fence = PostgresFence::new("orders");
    for (change, part) in [
        ("SELECT", "the fences are not installed in the schema \"tenure\""),
        ("CREATE SCHEMA tenure", "runs the statements of FenceSchema::migration"),
        ("ALTER TABLE tenure.fence RENAME TO gone", "the table \"tenure\".fence does not exist"),
        ("ALTER TABLE tenure.fence RENAME token TO number", "is not as the migration creates it"),
        ("ALTER TABLE tenure.fence ADD CHECK (token < 5)", "is not as the migration creates it"),
    ] {
        if change.starts_with("ALTER") {
            database.sql("DROP SCHEMA tenure CASCADE");
            FenceSchema::usual().install(&client).await.unwrap();
        }
        database.sql(change);
        let error = refused(&mut client, &fence, "billing=7").await;
        assert!(matches!(error, FenceError::Refused { reason: Reason::Unsupported, .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
        let error = fence.seal_on(&client).seal(&token("billing=7")).await.unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Unsupported, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_row_that_the_fence_did_not_write_is_not_overwritten() {
    let Some(database) = Database::on_shared("foreign_row") else { return };
    let mut client = install(&database).await;
    database.sql("INSERT INTO tenure.fence VALUES ('orders', '../x', 7, now()), ('stock', 'billing', 1::bigint << 60, now())");
    for resource in ["orders", "stock"] {
        let error = refused(&mut client, &PostgresFence::new(resource), "billing=8").await;
        assert!(matches!(error, FenceError::Foreign { .. }), "{error:?}");
        assert!(error.to_string().contains("correct it by hand"), "{error}");
    }
}

/// The page has the rights of a role, and the example that is compiled with the documentation of the crate.
#[test]
fn the_page_has_the_least_rights_and_an_example_that_compiles() {
    let page = include_str!("../../../../docs/stores/postgres.md");
    assert!(page.contains(&FenceSchema::usual().rights("app").replace('"', "")));
    let example = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let compiled = include_str!("../../src/fence/mod.rs").replace("//! ", "").replace("//!", "");
    assert!(compiled.contains(example), "{example}");
}

#[tokio::test]
async fn a_role_without_rights_is_told_what_to_run() {
    let Some(database) = Database::on_shared("no_rights") else { return };
    let client = install(&database).await;
    client.batch_execute("CREATE ROLE guest LOGIN").await.unwrap();
    let mut guest = role_at(&database, database.server().address(), "guest").await;
    let may_not_install = FenceSchema::named("mine").unwrap().install(&guest).await.unwrap_err();
    assert!(
        matches!(may_not_install, FenceError::Refused { reason: Reason::Denied, .. }),
        "{may_not_install}"
    );
    for fence in [PostgresFence::new("orders"), PostgresFence::new("orders").lease_here()] {
        for rights in ["SELECT", "GRANT USAGE ON SCHEMA tenure TO guest"] {
            database.sql(rights);
            let error = refused(&mut guest, &fence, "billing=7").await;
            assert!(matches!(error, FenceError::Refused { reason: Reason::Denied, .. }), "{error:?}");
            assert!(error.to_string().contains("runs the statements of FenceSchema::rights"), "{error}");
        }
    }
    database.sql(&FenceSchema::usual().rights("guest"));
    fenced(&mut guest, &PostgresFence::new("orders"), "billing=7").await.unwrap().commit().await.unwrap();
}

/// Functions of the migration use PostgreSQL's own functions, whatever is before them in the search path.
#[tokio::test]
async fn functions_of_the_same_name_as_postgresqls_own_are_not_used() {
    let Some(database) = Database::on_shared("fence_shadows") else { return };
    database.sql("CREATE SCHEMA shadow");
    for (name, arguments) in [
        ("set_config", "text, text, boolean"),
        ("current_setting", "text"),
        ("current_setting", "text, boolean"),
        ("pg_advisory_xact_lock", "bigint"),
        ("pg_advisory_xact_lock_shared", "bigint"),
        ("hashtextextended", "text, bigint"),
        ("octet_length", "text"),
        ("format", "text, text, text"),
        ("clock_timestamp", ""),
        ("array_append", "text[], text"),
        ("to_regclass", "text"),
        ("to_regnamespace", "text"),
    ] {
        let body = "LANGUAGE plpgsql AS $$ BEGIN RAISE 'the wrong function'; END $$";
        database.sql(&format!("CREATE FUNCTION shadow.{name}({arguments}) RETURNS text {body}"));
    }
    database.sql(
        "CREATE FUNCTION shadow.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'; \
         CREATE OPERATOR shadow.= (LEFTARG = text, RIGHTARG = text, FUNCTION = shadow.never); \
         CREATE TABLE shadow.pg_class (); CREATE TABLE shadow.pg_trigger (); CREATE TABLE shadow.fence (); \
         ALTER DATABASE fence_shadows SET search_path = shadow, pg_catalog, public",
    );
    let mut client = install(&database).await;
    let guard = "CREATE TABLE public.items (id int); SELECT tenure.fence_table('public.items', 'orders')";
    client.batch_execute(guard).await.unwrap();
    let fence = PostgresFence::new("orders");
    for offered in ["billing=7", "billing=7", "billing=8"] {
        let transaction = fenced(&mut client, &fence, offered).await.unwrap();
        transaction.execute("INSERT INTO public.items VALUES (1)", &[]).await.unwrap();
        transaction.commit().await.unwrap();
    }
    assert!(refused(&mut client, &fence, "billing=7").await.is_stale());
}
