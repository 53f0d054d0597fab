use std::fmt;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, Transaction};
use tenure_fence::{Fence, FenceError, FencingToken, Seal};

use crate::SqliteFence;

/// What a fenced write does inside of its transaction.
pub type Work<'w> = Box<dyn FnOnce(&Transaction<'_>) -> rusqlite::Result<()> + Send + 'w>;

/// A connection whose every write is a transaction that is admitted with a token, for `Lease::fenced`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rusqlite::Connection;
/// use tenure_fence::{Fence, Seal};
/// use tenure_sqlite::{FencedConnection, SqliteFence};
///
/// let connection = Connection::open_in_memory()?;
/// connection.execute_batch("CREATE TABLE entries (amount INTEGER)")?;
/// SqliteFence::install(&connection)?;
/// let ledger = FencedConnection::new(connection, SqliteFence::new("ledger")?);
///
/// // With a lease: `lease.fenced(&ledger).write(Box::new(…))`.
/// let token = "billing/nightly=1762000000000001".parse()?;
/// ledger.seal(&token).await?;
/// let mut entries = 0;
/// ledger
///     .write(
///         &token,
///         Box::new(|transaction| {
///             transaction.execute("INSERT INTO entries VALUES (20)", ())?;
///             entries = transaction.query_row("SELECT count(*) FROM entries", (), |row| row.get(0))?;
///             Ok(())
///         }),
///     )
///     .await?;
/// assert_eq!(entries, 1);
/// # Ok(())
/// # }
/// ```
///
/// A write blocks the thread until it has committed, like every call of SQLite. In an asynchronous program, use it for short
/// transactions, or call it on a thread that may block.
pub struct FencedConnection {
    fence: SqliteFence,
    connection: Mutex<Connection>,
}

impl FencedConnection {
    /// Fences this connection.
    pub fn new(connection: Connection, fence: SqliteFence) -> Self {
        Self { fence, connection: Mutex::new(connection) }
    }

    /// The fence.
    pub fn fence(&self) -> &SqliteFence {
        &self.fence
    }

    /// Reads, with the same connection. A write in `read` is not fenced, unless its table is guarded.
    pub fn read<T>(&self, read: impl FnOnce(&Connection) -> T) -> T {
        // A panic of an earlier write has rolled its transaction back.
        read(&self.connection.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(&self, token: &FencingToken, work: Work<'_>) -> Result<(), FenceError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        self.fence.transaction(&mut connection, token, work)
    }
}

impl Fence for FencedConnection {
    type Write<'w> = Work<'w>;
    type Written = ();

    /// Runs the work in a transaction that is admitted with this token, and commits it.
    async fn write<'w>(&'w self, token: &'w FencingToken, work: Work<'w>) -> Result<(), FenceError> {
        self.run(token, work)
    }
}

impl Seal for FencedConnection {
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        self.run(token, Box::new(|_| Ok(())))
    }
}

impl fmt::Debug for FencedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencedConnection({})", self.fence)
    }
}
