use tenure_core::Token;
use tenure_fence::FenceError;
use tenure_store::Reason;
use tokio_postgres::Client;

use super::PostgresFence;
use super::server_error::ServerError;
use crate::open::{OpenError, PostgresBuilder, Tables, check_name};
use crate::statements::{fill_parts, identifier, literal};
use crate::words;

/// The schema that has the marks and the functions of all fences of a database.
///
/// ```
/// use tenure_postgres::FenceSchema;
///
/// // For an administrator, or for the tool that runs your other migrations.
/// println!("{}", FenceSchema::usual().migration());
/// println!("{}", FenceSchema::usual().rights("app"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceSchema {
    schema: String,
    /// The tables of the leases that are in the same database.
    leases: Tables,
}

impl FenceSchema {
    /// Version of the migration.
    pub const VERSION: u32 = 1;

    /// Longest name of a resource, in bytes.
    pub const RESOURCE_MAX: usize = 1024;

    /// The schema `tenure`, where the usual store has its tables, too.
    pub fn usual() -> Self {
        Self { schema: Tables::SCHEMA.to_owned(), leases: Tables::USUAL }
    }

    /// A schema of another name.
    pub fn named(schema: &str) -> Result<Self, OpenError> {
        check_name("schema", schema)?;
        Ok(Self { schema: schema.to_owned(), leases: Tables::USUAL })
    }

    /// Takes the grants of leases from the tables of this store, which is in the same database. Default: `tenure.token`.
    pub fn with_leases_of(self, store: &PostgresBuilder) -> Result<Self, OpenError> {
        store.check()?;
        Ok(Self { leases: store.tables().clone(), ..self })
    }

    /// The fence of a resource: any name that its writers agree on, such as that of a table. The functions of this schema
    /// must be installed.
    pub fn fence(&self, resource: impl Into<String>) -> PostgresFence {
        PostgresFence::in_schema(self.clone(), resource.into())
    }

    /// The statements that install the table and the functions. They may run again, and change no mark. Run them in one
    /// transaction.
    pub fn migration(&self) -> String {
        [
            include_str!("sql/begin.sql"),
            include_str!("sql/fence.sql"),
            include_str!("sql/fence_granted.sql"),
            include_str!("sql/guard.sql"),
            include_str!("sql/end.sql"),
        ]
        .map(|file| self.fill(file))
        .concat()
    }

    /// The statements that give a role the least rights: to call the fence, and to see the marks.
    pub fn rights(&self, role: &str) -> String {
        let (schema, marks, role) = (identifier(&self.schema), self.marks(), identifier(role));
        format!(
            "GRANT USAGE ON SCHEMA {schema} TO {role};\n\
             GRANT EXECUTE ON FUNCTION {schema}.fence(text, text, bigint, bigint), \
             {schema}.fence_granted(text, text, bigint, bigint) TO {role};\n\
             GRANT SELECT ON {marks} TO {role};\n"
        )
    }

    /// Installs the table and the functions, all or nothing. The role of the connection becomes their owner. It needs the right
    /// to create them, and for [`PostgresFence::lease_here`] the rights of the store.
    pub async fn install(&self, client: &Client) -> Result<(), FenceError> {
        let Err(error) = client.batch_execute(&self.migration()).await else { return Ok(()) };
        let what = format!("the schema {} of the fences", identifier(&self.schema));
        let Some(answer) = ServerError::of_tokio(&error) else {
            return Err(FenceError::unknown(what, words::chain(&error)));
        };
        Err(match answer.code {
            _ if answer.may_be_applied() => FenceError::unknown(what, answer.words()),
            "42501" => FenceError::refused(
                what,
                Reason::Denied,
                format!(
                    "the role may not create it: an administrator runs the statements of FenceSchema::migration ({})",
                    answer.words()
                ),
            ),
            _ => FenceError::refused(what, answer.reason(), answer.words()),
        })
    }

    /// The name of the schema.
    pub fn name(&self) -> &str {
        &self.schema
    }

    /// The table of marks, in a statement.
    pub(super) fn marks(&self) -> String {
        format!("{}.fence", identifier(&self.schema))
    }

    /// The table of tokens that grants write, in a statement.
    pub(super) fn tokens(&self) -> String {
        self.leases.token()
    }

    /// The statement that calls the fence.
    /// $1: resource, $2: lease, $3: token, $4: the greatest token that was seen
    pub(super) fn call(&self, lease_here: bool) -> String {
        let function = if lease_here { "fence_granted" } else { "fence" };
        format!("SELECT {}.{function}($1, $2, $3, $4)", identifier(&self.schema))
    }

    fn fill(&self, file: &str) -> String {
        fill_parts(file, |part| match part {
            "schema" => identifier(&self.schema),
            "schema_text" => literal(&identifier(&self.schema)),
            "fence" => self.marks(),
            "fence_text" => literal(&self.marks()),
            "token" => self.tokens(),
            "check" => self.fill(include_str!("sql/check.sql")).trim_end().to_owned(),
            "version" => Self::VERSION.to_string(),
            "resource_max" => Self::RESOURCE_MAX.to_string(),
            "token_max" => Token::MAX.to_string(),
            "migration_lock" => MIGRATION_LOCK.to_string(),
            other => unreachable!("no part is called {other}"),
        })
    }
}

/// An arbitrary number that only Tenure uses.
const MIGRATION_LOCK: i64 = 0x7465_6e75_7266;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_migration_names_its_schema_everywhere() {
        let migration = FenceSchema::named("my fences").unwrap().migration();
        assert!(!migration.contains(['{', '}']), "{migration}");
        assert!(
            migration.contains("CREATE OR REPLACE FUNCTION \"my fences\".fence(resource text, lease text")
        );
        assert!(migration.contains("FROM \"tenure\".\"token\" AS t"), "{migration}");
        let own = Postgres::builder().schema("locks").table("Jobs");
        let migration = FenceSchema::usual().with_leases_of(&own).unwrap().migration();
        assert!(migration.contains("FROM \"locks\".\"Jobs_token\" AS t"), "{migration}");
    }

    #[test]
    fn a_schema_whose_name_postgresql_would_change_is_refused() {
        assert!(FenceSchema::named("").is_err());
        assert!(FenceSchema::named("pg_fences").is_err());
        assert!(FenceSchema::usual().with_leases_of(&Postgres::builder().schema("a\\b")).is_err());
    }

    use crate::Postgres;
}
