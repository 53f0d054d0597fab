//! A fence inside the transactions of a SQLite database: the check of the token, the new mark and the writes of the program
//! commit together, or not at all.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rusqlite::{Connection, TransactionBehavior};
//! use tenure_sqlite::SqliteFence;
//!
//! let mut connection = Connection::open_in_memory()?;
//! connection.execute_batch("CREATE TABLE entries (amount INTEGER)")?;
//! SqliteFence::install(&connection)?;
//! let ledger = SqliteFence::new("ledger")?;
//!
//! // A holder takes it from its lease: `lease.fencing_token()`.
//! let token = "billing/nightly=1762000000000001".parse()?;
//! let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
//! ledger.admit(&transaction, &token)?;
//! transaction.execute("INSERT INTO entries VALUES (20)", ())?;
//! transaction.commit()?;
//!
//! let earlier = "billing/nightly=1761999999999999".parse()?;
//! let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
//! assert!(ledger.admit(&transaction, &earlier).unwrap_err().is_stale());
//! # Ok(())
//! # }
//! ```
//!
//! * [`SqliteFence`]: the fence of one resource, for transactions of the program.
//! * [`FencedConnection`]: a connection that begins and commits them itself, for `Lease::fenced`.
//! * [`SqliteFence::guard`]: refuses every change of a table outside of an admitted transaction, from any program.
//!
//! The crate has no store: a lease is in any store of Tenure. `docs/stores/sqlite-fence.md` has the guarantees.

mod failure;
mod fenced_connection;
mod guard;
mod schema;
mod sqlite_fence;

pub use fenced_connection::{FencedConnection, Work};
/// The client whose connections and transactions a [`SqliteFence`] takes.
pub use rusqlite;
pub use sqlite_fence::SqliteFence;

/// Compiles the Rust code of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/stores/sqlite-fence.md")]
struct Page;
