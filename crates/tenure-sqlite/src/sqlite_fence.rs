use std::fmt;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior};
use tenure_core::Token;
use tenure_fence::{FenceError, FencingToken, SeenMark};
use tenure_store::{Key, Reason};

use crate::{failure, guard, schema};

/// The fence of one resource in a SQLite database: [`admit`](Self::admit) checks the token inside of the transaction that
/// writes.
///
/// The mark, the greatest token with its lease, is a row of the table `tenure_fence` in the main database. SQLite has one
/// writer at a time, and refuses the write of a transaction that has read an outdated state. So no newer token can be admitted
/// between the check and the commit.
///
/// The methods block: SQLite has no other way.
pub struct SqliteFence {
    resource: String,
    has_guards: bool,
    seen: SeenMark,
}

impl SqliteFence {
    /// Creates the tables of the fence in the main database, unless they are there. A program may call it at every start.
    ///
    /// [`FenceError::Foreign`] if tables with these names have another form.
    pub fn install(connection: &Connection) -> Result<(), FenceError> {
        let failed = |error| failure::of_statement(DATABASE, error);
        if !schema::is_installed(connection).map_err(failed)? {
            connection.execute_batch(schema::INSTALL).map_err(failed)?;
            if !schema::is_installed(connection).map_err(failed)? {
                let what =
                    "the table tenure_fence or tenure_fence_admission is not that of this version. Rename it"
                        .to_owned();
                return Err(FenceError::Foreign { resource: DATABASE.to_owned(), what });
            }
        }
        Ok(())
    }

    /// The fence of this resource: a name that its writers choose, such as `ledger`.
    pub fn new(resource: &str) -> Result<Self, FenceError> {
        let is_name = (1..=RESOURCE_MAX).contains(&resource.len()) && !resource.contains(char::is_control);
        if !is_name {
            let what =
                format!("the name of a resource has 1 to {RESOURCE_MAX} bytes, and no control characters");
            return Err(FenceError::refused(format!("{resource:?}"), Reason::Invalid, what));
        }
        Ok(Self { resource: resource.to_owned(), has_guards: false, seen: SeenMark::default() })
    }

    /// Opens the [guarded](Self::guard) tables of the resource to every transaction that it admits.
    ///
    /// Such a transaction must end with [`close`](Self::close) before it commits. SQLite refuses the commit otherwise.
    /// [`transaction`](Self::transaction) does that. The connection must enforce foreign keys, which is the default here.
    #[must_use]
    pub fn with_guarded_tables(self) -> Self {
        Self { has_guards: true, ..self }
    }

    /// Guards a table: every change of it outside of a transaction that was admitted to this resource is refused, also if
    /// it comes from a program that knows nothing of the fence.
    ///
    /// The triggers do not cover `DROP TABLE` and `ALTER TABLE`, nor a program that removes or disables them.
    pub fn guard(&self, connection: &Connection, table: &str) -> Result<(), FenceError> {
        let failed = |error| failure::of_statement(&self.resource, error);
        let made = guard::triggers(connection, &self.resource, table).map_err(failed)?;
        let triggers = made.map_err(|what| FenceError::refused(&self.resource, Reason::Invalid, what))?;
        // Both or nothing, also inside of a transaction of the caller.
        let batch =
            format!("SAVEPOINT tenure_guard; {}{triggers} RELEASE tenure_guard;", guard::removal(table));
        connection.execute_batch(&batch).map_err(|error| {
            let _ = connection.execute_batch("ROLLBACK TO tenure_guard; RELEASE tenure_guard;");
            failed(error)
        })
    }

    /// Removes the guard of a table.
    pub fn unguard(&self, connection: &Connection, table: &str) -> Result<(), FenceError> {
        connection
            .execute_batch(&guard::removal(table))
            .map_err(|error| failure::of_statement(&self.resource, error))
    }

    /// Checks the token inside of this transaction, and raises the mark. Call it first, and once, in each transaction that
    /// writes. The writes behind it and the mark commit together.
    ///
    /// After an error, roll the transaction back: drop it.
    ///
    /// Begin with `BEGIN IMMEDIATE` ([`TransactionBehavior::Immediate`]), which waits for other writers. A deferred transaction
    /// is as safe: this call takes the write lock. But if it has read before another one wrote, SQLite refuses that.
    pub fn admit(&self, transaction: &Transaction<'_>, token: &FencingToken) -> Result<(), FenceError> {
        self.must_be_open(transaction)?;
        let failed = |error| failure::of_statement(&self.resource, error);
        let least = self.seen.least(&self.resource, token)?;
        let mark = self.mark(transaction)?;
        if let Some(mark) = mark.as_ref().filter(|mark| mark.name() != token.name()) {
            return token.check(&self.resource, Some(mark));
        }
        let shown = mark.as_ref().map_or(Token::ZERO, FencingToken::token);
        if shown < least {
            let (resource, offered) = (self.resource.clone(), token.clone());
            return Err(FenceError::WentBack { resource, offered, seen: least, shown });
        }
        if let Some(mark) = &mark {
            self.seen.note(mark);
        }
        token.check(&self.resource, mark.as_ref())?;
        // Also for an equal token: a deferred transaction that only reads the mark could write to an attached database after
        // a newer holder has committed. This statement takes the write lock of the database with the mark.
        let mut raise = transaction.prepare_cached(schema::RAISE).map_err(failed)?;
        let changed = raise.execute((&self.resource, token.name().as_str(), token.token().get() as i64));
        if changed.map_err(failed)? != usize::from(shown < token.token()) {
            let what = "the mark changed between two statements of one transaction";
            return Err(FenceError::refused(&self.resource, Reason::Damaged, what));
        }
        if self.has_guards { self.open(transaction) } else { Ok(()) }
    }

    /// Closes the guarded tables at the end of a transaction, so that it can commit. Does nothing for a fence without them.
    pub fn close(&self, transaction: &Transaction<'_>) -> Result<(), FenceError> {
        if !self.has_guards {
            return Ok(());
        }
        self.must_be_open(transaction)?;
        let closed =
            transaction.prepare_cached(schema::CLOSE).and_then(|mut close| close.execute([&self.resource]));
        closed.map(drop).map_err(|error| failure::of_statement(&self.resource, error))
    }

    /// Runs `work` in a transaction that is admitted with this token, and commits it. Nothing is written if the token is
    /// stale, or if `work` fails.
    ///
    /// [`FenceError::Unknown`] if the commit failed in a way that leaves its outcome open, such as an error of the disk.
    pub fn transaction<T>(
        &self,
        connection: &mut Connection,
        token: &FencingToken,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, FenceError> {
        let failed = |error| failure::of_statement(&self.resource, error);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        self.admit(&transaction, token)?;
        let done = work(&transaction);
        if transaction.is_autocommit() {
            // Some errors make SQLite roll back by itself, such as a full disk. But the work may also have committed.
            let source = match done {
                Err(error) => format!("the transaction has ended with an error: {error}"),
                Ok(_) => "the work has ended the transaction itself".to_owned(),
            };
            return Err(FenceError::unknown(&self.resource, source));
        }
        let done = done.map_err(failed)?;
        self.close(&transaction)?;
        transaction.commit().map_err(|error| failure::of_commit(&self.resource, error))?;
        self.seen.note(token);
        Ok(done)
    }

    /// Raises the fence, and changes no other table: the first act of a new holder. After it returns, the mark is as durable as
    /// any commit of this connection.
    pub fn seal(&self, connection: &mut Connection, token: &FencingToken) -> Result<(), FenceError> {
        self.transaction(connection, token, |_| Ok(()))
    }

    /// The mark: the greatest token that was admitted, as this connection sees it.
    pub fn mark(&self, connection: &Connection) -> Result<Option<FencingToken>, FenceError> {
        let read = connection.prepare_cached(schema::READ).and_then(|mut read| {
            let columns = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
            read.query_row([&self.resource], columns).optional()
        });
        let Some((lease, token)) = read.map_err(|error| failure::of_statement(&self.resource, error))? else {
            return Ok(None);
        };
        let mark = Key::from_stored(&lease).ok().zip(Token::try_from(token).ok());
        let mark = mark.and_then(|(lease, token)| FencingToken::new(lease, token).ok());
        let foreign = || {
            let what =
                format!("its row in tenure_fence has lease {lease:?} and token {token}. Inspect the table");
            FenceError::Foreign { resource: self.resource.clone(), what }
        };
        mark.ok_or_else(foreign).map(Some)
    }

    /// Accepts that the resource shows this token, although it has shown a greater one: the token `shown` of
    /// [`FenceError::WentBack`].
    ///
    /// Call it after an operator has looked at the database. From then on, every token that is not smaller than the mark is
    /// admitted again, also one that was refused before.
    pub fn acknowledge(&self, shown: Token) {
        self.seen.acknowledge(shown);
    }

    /// Opens the guarded tables to this transaction.
    fn open(&self, transaction: &Transaction<'_>) -> Result<(), FenceError> {
        let failed = |error| failure::of_statement(&self.resource, error);
        // Without it, SQLite would commit the row. The setting cannot change inside of a transaction.
        let mut setting = transaction.prepare_cached("PRAGMA foreign_keys").map_err(failed)?;
        let enforces: bool = setting.query_row((), |row| row.get(0)).map_err(failed)?;
        if !enforces {
            let what = "the connection does not enforce foreign keys, which guarded tables need: run PRAGMA foreign_keys = ON \
                        before the transaction";
            return Err(FenceError::refused(&self.resource, Reason::Unsupported, what));
        }
        let opened =
            transaction.prepare_cached(schema::OPEN).and_then(|mut open| open.execute([&self.resource]));
        match opened {
            Ok(_) => Ok(()),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                let what = "its guarded tables are open already. Admit once in each transaction. If no transaction did, another \
                            program has inserted the row: delete it from tenure_fence_admission"
                    .to_owned();
                Err(FenceError::Foreign { resource: self.resource.clone(), what })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Refuses a transaction that has ended: each statement behind it would commit by itself.
    fn must_be_open(&self, transaction: &Transaction<'_>) -> Result<(), FenceError> {
        if transaction.is_autocommit() {
            let what =
                "the transaction has ended already: SQLite has rolled it back, or a statement has ended it";
            return Err(FenceError::refused(&self.resource, Reason::Invalid, what));
        }
        Ok(())
    }
}

impl fmt::Display for SqliteFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)
    }
}

impl fmt::Debug for SqliteFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteFence({self})")
    }
}

/// Longest name of a resource, in bytes.
const RESOURCE_MAX: usize = 512;

/// The resource in errors of the installation.
const DATABASE: &str = "the SQLite database";
