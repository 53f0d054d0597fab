//! The fence of a user's own tables, on real servers.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

#[path = "fence/cost.rs"]
mod cost;
mod database;
#[path = "fence/granted.rs"]
mod granted;
#[path = "fence/guard.rs"]
mod guard;
#[path = "fence/installation.rs"]
mod installation;
#[path = "fence/late_commit.rs"]
mod late_commit;
#[path = "fence/ledger.rs"]
mod ledger;
#[path = "fence/rules.rs"]
mod rules;
#[path = "fence/sqlx.rs"]
mod sqlx;
#[path = "fence/suite.rs"]
mod suite;
#[path = "fence/went_back.rs"]
mod went_back;

use std::net::SocketAddr;

use tenure_fence::{Fence, FenceError, FencingToken};
use tenure_postgres::{FenceSchema, PostgresFence};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, Transaction};

use crate::database::Database;

/// A connection of a user.
pub(crate) async fn user(database: &Database) -> Client {
    user_at(database, database.server().address()).await
}

/// The same, through another address.
pub(crate) async fn user_at(database: &Database, address: SocketAddr) -> Client {
    role_at(database, address, "postgres").await
}

/// The same, as another role.
pub(crate) async fn role_at(database: &Database, address: SocketAddr, role: &str) -> Client {
    let settings =
        format!("host={} port={} user={role} dbname={}", address.ip(), address.port(), database.name());
    let (client, connection) =
        tokio_postgres::connect(&settings, NoTls).await.expect("the server has a connection left");
    tokio::spawn(connection);
    client
}

/// Installs the fences, and creates a table of a user.
pub(crate) async fn install(database: &Database) -> Client {
    let client = user(database).await;
    FenceSchema::usual().install(&client).await.unwrap();
    client.batch_execute("CREATE TABLE orders (id int PRIMARY KEY, note text)").await.unwrap();
    client
}

pub(crate) fn token(text: &str) -> FencingToken {
    text.parse().unwrap()
}

/// Fences a transaction.
pub(crate) async fn fenced<'c>(
    client: &'c mut Client,
    fence: &PostgresFence,
    offered: &str,
) -> Result<Transaction<'c>, FenceError> {
    let transaction = client.transaction().await.unwrap();
    fence.write(&token(offered), &transaction).await?;
    Ok(transaction)
}

/// The error of a transaction that the fence refuses.
pub(crate) async fn refused(client: &mut Client, fence: &PostgresFence, offered: &str) -> FenceError {
    match fenced(client, fence, offered).await {
        Ok(_) => panic!("{offered} was admitted"),
        Err(error) => error,
    }
}

/// The code of an error of the server.
#[track_caller]
pub(crate) fn code<T>(answer: Result<T, tokio_postgres::Error>) -> SqlState {
    let Err(error) = answer else { panic!("the server accepted it") };
    error.code().unwrap_or_else(|| panic!("{error}")).clone()
}
