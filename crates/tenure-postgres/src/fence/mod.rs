//! The fence of your own tables: transactions that carry the token of a lease, and that the database refuses when a newer
//! holder has been there.
//!
//! The migration of [`FenceSchema`] installs a table of marks and a few functions. A transaction calls `fence(resource, lease,
//! token)` first. The call fails if the token is stale. Otherwise the transaction has a lock of the resource until it ends, so
//! check, write and mark are one atomic step.
//!
//! [`PostgresFence`] makes the call in a transaction of `tokio-postgres`, and with the feature `sqlx` in one of `sqlx`.
//!
//! ```no_run
//! # use tenure::Coordinator;
//! # use tenure_postgres::{FenceSchema, PostgresFence};
//! # async fn run(coordinator: Coordinator, mut client: tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! FenceSchema::usual().install(&client).await?;               // once, as the owner of the schema
//!
//! let fence = PostgresFence::new("orders").lease_here();      // the lease is in this database, too
//! let lease = coordinator.lease("billing/nightly")?.acquire().await?;
//! lease.fenced(&fence.seal_on(&client)).seal().await?;        // from now on, no earlier holder writes
//!
//! let transaction = client.transaction().await?;
//! lease.fenced(&fence).write(&transaction).await?;
//! transaction.execute("UPDATE orders SET billed = true WHERE id = 7", &[]).await?;
//! transaction.commit().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Why it is safe
//!
//! Every error of the call makes the server roll the transaction back. Also a token that went back is an error of the server,
//! and not only one of the client. So a program that ignores the error commits nothing, unless it goes back to a savepoint
//! that it made before the call: make none, or guard the tables with `fence_table`.

mod postgres_fence;
mod postgres_seal;
mod refusal;
mod schema;
mod server_error;
#[cfg(feature = "sqlx")]
mod sqlx_fence;
#[cfg(feature = "sqlx")]
mod sqlx_seal;

pub use postgres_fence::PostgresFence;
pub use postgres_seal::PostgresSeal;
pub use schema::FenceSchema;
#[cfg(feature = "sqlx")]
pub use sqlx_fence::SqlxFence;
#[cfg(feature = "sqlx")]
pub use sqlx_seal::SqlxSeal;
