//! Paused holders that continue after their successor has written, on every kind of resource: with the fence, which refuses
//! each of their writes, and without it.
#![expect(clippy::disallowed_methods, reason = "the tests give other processes time")]

mod accident;
mod run_support;

use accident::{Resource, accidents};
use tenure_testkit::{Kind, PostgresServer, RedisKind, RedisServer, RedisSetup, Server};

/// The process under the lease. In a normal run of the tests it does nothing.
#[test]
fn writer() {
    accident::serve();
}

/// The fence refuses every late write. Without it, the same accident is a late write that is accepted.
fn fence_refuses(name: &str, resource: &Resource) {
    every_late_write_is_refused(name, resource);
    let bare = accidents(name, resource, false);
    assert_eq!((bare.accepted, bare.refused), (bare.continued, 0), "{name} without the fence");
}

fn every_late_write_is_refused(name: &str, resource: &Resource) {
    let fenced = accidents(name, resource, true);
    assert_eq!((fenced.accepted, fenced.refused), (0, fenced.continued), "{name}");
}

#[test]
fn a_fenced_file_refuses_the_writer_that_was_paused_and_an_ordinary_file_does_not() {
    fence_refuses("fenced-file", &Resource::File);
}

#[test]
fn a_fenced_log_refuses_the_writer_that_was_paused() {
    every_late_write_is_refused("fenced-log", &Resource::Log);
}

#[test]
fn a_fenced_value_refuses_the_writer_that_was_paused() {
    every_late_write_is_refused("fenced-value", &Resource::Value);
}

#[test]
fn a_fenced_object_refuses_the_writer_that_was_paused() {
    let Some(server) = Server::shared(Kind::Minio) else { return };
    server.create_bucket("accident");
    let options = format!("?endpoint={}", server.endpoint());
    let object = Resource::Object("s3://accident".to_owned(), options, server.environment());
    every_late_write_is_refused("fenced-object", &object);
}

#[test]
fn a_fenced_transaction_of_postgres_is_refused_to_the_writer_that_was_paused_and_a_plain_one_is_not() {
    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url();
    server.sql("CREATE TABLE entries (line text)");
    server.sql(&tenure_postgres::FenceSchema::usual().migration());
    fence_refuses("fenced-postgres", &Resource::Postgres(url));
}

#[test]
fn a_fenced_script_of_redis_is_refused_to_the_writer_that_was_paused_and_a_plain_command_is_not() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    fence_refuses("fenced-redis", &Resource::Redis(server.url()));
}

#[test]
fn a_fenced_transaction_of_sqlite_is_refused_to_the_writer_that_was_paused_and_a_plain_one_is_not() {
    fence_refuses("fenced-sqlite", &Resource::Sqlite);
}
