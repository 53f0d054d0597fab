//! The URLs of PostgreSQL databases that are accepted, the errors of the others, and the canonical form.
#![cfg(feature = "postgres")]

mod support;

use support::{canonical, refused};
use tenure_connect::StoreUrl;

#[test]
fn a_plain_url_is_its_own_canonical_form() {
    for text in [
        "postgres://",
        "postgres:///app",
        "postgres://db.example.org/app",
        "postgres://me@db.example.org:6432/app?schema=locks&table=jobs",
        "postgres://me@a:5432,b:5433,c/app",
        "postgres://me@[::1]:5432/app",
        "postgres:///app?host=/var/run/postgresql&port=5433",
        "postgres:///app?service=billing",
        "postgres://me@db/app?connect_timeout=3&sslmode=verify-full&sslrootcert=/etc/ssl/my-ca.pem",
        "postgres://db/app?accept=server-clock&accept=fsync-off",
        "postgres://my%20role@db/my%2520app",
    ] {
        assert_eq!(canonical(text), text);
    }
    for (text, expected) in [
        ("postgresql://me@db/app", "postgres://me@db/app"),
        ("POSTGRES://db/app?user=me", "postgres://me@db/app"),
        ("postgres://db?dbname=app", "postgres://db/app"),
        ("postgres:///app?host=db&port=6432", "postgres://db:6432/app"),
        ("postgres:///app?host=a,b&port=6432", "postgres://a:6432,b:6432/app"),
        ("postgres://%2Fvar%2Frun%2Fpostgresql/app", "postgres:///app?host=/var/run/postgresql"),
        ("postgres://db/app?schema=tenure&table=record", "postgres://db/app"),
        ("postgres://:5433/app", "postgres:///app?port=5433"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
    }
}

#[test]
fn an_error_shows_a_valid_url_and_repeats_no_secret() {
    refused("postgres:db/app", "lacks two slashes");
    refused("postgres://me:hush@db/app", "carries no password: put it into PGPASSWORD");
    refused("postgres://db/app?password=hush", "carries no password");
    refused("postgres://db/app#hush", "cannot have a part after '#'");
    refused("postgres://db:0/app", "a port is a number");
    refused("postgres://db:hush/app", "a port is a number");
    refused("postgres://d b/app", "is not a host");
    refused("postgres://db/100%", "write %25");
    refused("postgres://db/%ff", "UTF-8");
    refused("postgres://db/app?sslmode=maybe", "use disable, prefer, require, verify-ca or verify-full");
    refused("postgres://db/app?sslmode=require&sslmode=disable", "twice");
    refused("postgres://db/app?sslrootcert=ca.pem", "an absolute path, or system");
    refused("postgres://db/app?target_session_attrs=read-only", "accepts writes");
    refused("postgres://db/app?pool=9", "no option \"pool\": it has host, port, user, schema");
    refused("postgres://db/app?accept=nfs", "accept can be server-clock");
    refused("postgres://db/app?schema=pg_temp", "not the name of a schema");
    refused("postgres://db/app?host=other", "names its host twice");
    refused("postgres:///app?host=a,b&port=1,2,3", "one port for all hosts");
}

#[test]
fn the_guarantees_of_a_database_need_no_server() {
    let url: StoreUrl = "postgres://db.example.org/app".parse().unwrap();
    assert!(url.guarantees().unwrap().missing_for_leases().is_empty());
    assert!(url.is_there().unwrap() && !url.has_removal());
    let statements = url.creation_statements().unwrap();
    assert!(statements.contains("CREATE TABLE IF NOT EXISTS \"tenure\".\"record\""), "{statements}");
    let fences = |url: &str| url.parse::<StoreUrl>().unwrap().fence_statements().unwrap();
    let statements = fences("postgres://app@db.example.org/app?schema=jobs").unwrap();
    for part in ["CREATE OR REPLACE FUNCTION \"jobs\".fence(", "FROM \"jobs\".\"token\" AS t", "TO \"app\";"]
    {
        assert!(statements.contains(part), "{part} is not in {statements}");
    }
    assert_eq!(fences("file:///srv/leases"), None);
}

#[test]
fn several_risks_are_accepted_in_one_option() {
    for (list, each) in [
        (
            "postgres://db/app?accept=server-clock,fsync-off",
            "postgres://db/app?accept=server-clock&accept=fsync-off",
        ),
        ("redis://cache?accept=restart,eviction", "redis://cache?accept=restart&accept=eviction"),
        ("s3://bucket/x?accept=http,server-clock", "s3://bucket/x?accept=http&accept=server-clock"),
        ("file:///srv/x?accept=nfs,foreign-owner", "file:///srv/x?accept=nfs&accept=foreign-owner"),
    ] {
        let parsed = |text: &str| text.parse::<StoreUrl>().unwrap().to_string();
        assert_eq!(parsed(list), parsed(each));
    }
    refused("postgres://db/app?accept=server-clock,nfs", "accept can be server-clock");
    refused("postgres://db/app?accept=server-clock,", "accept can be server-clock");
}

#[test]
fn every_caller_of_a_database_knows_it_by_the_same_name() {
    let name = |text: &str| text.parse::<StoreUrl>().unwrap().identity();
    assert_eq!(name("postgres://me@db/app?sslmode=require"), "postgres://db:5432/app");
    assert_eq!(name("postgres://you@db:5432/app?accept=server-clock"), "postgres://db:5432/app");
    assert_ne!(name("postgres://db/app?table=jobs"), name("postgres://db/app"));
}
