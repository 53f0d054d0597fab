//! Tenure's store in a PostgreSQL database: one row for each key, replaced by conditional updates.
//!
//! ```no_run
//! use tenure_postgres::Postgres;
//!
//! // The user, the password and TLS come from the usual places of PostgreSQL's own tools.
//! let store = Postgres::builder().host("db.example.org").database("app").open()?;
//! # Ok::<(), tenure_postgres::OpenError>(())
//! ```
//!
//! `docs/stores/postgres.md` has the URL, the guarantees, the least rights and the tested versions.
//!
//! # Design
//!
//! * Each call is one statement in a transaction of its own, and PostgreSQL re-checks its condition on the latest row
//!   (READ COMMITTED). No call uses the state of a session, so a pooler in transaction mode may stand in between.
//! * No statement is ever sent twice, except after an error that proves that it had no effect.
//! * The token of a lease has a row of its own, which only a grant writes. The transactions of a user may lock it
//!   without delaying a renewal.
//! * Several calls share a connection, in order. Every write except a renewal may wait for a lock, so it never shares a
//!   connection with a renewal or a read.

mod calls;
mod classify;
mod conditional_write;
mod connection;
mod doubts;
pub mod fence;
mod open;
mod stamp;
mod statements;
mod store;
mod watch;
mod words;

pub use calls::Calls;
#[doc(inline)]
pub use fence::{FenceSchema, PostgresFence};
pub use open::{Environment, OpenError, PostgresBuilder};
pub use store::Postgres;
/// The client whose transactions a [`PostgresFence`] takes.
pub use tokio_postgres;
