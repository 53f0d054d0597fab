use super::OpenError;
use crate::statements::identifier;

/// The names of the tables of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) schema: Option<String>,
    pub(crate) table: Option<String>,
}

impl Tables {
    pub(crate) const SCHEMA: &str = "tenure";
    pub(crate) const TABLE: &str = "record";

    /// Both names are the usual ones.
    pub(crate) const USUAL: Self = Self { schema: None, table: None };

    pub(crate) fn schema_name(&self) -> &str {
        self.schema.as_deref().unwrap_or(Self::SCHEMA)
    }

    pub(crate) fn record_name(&self) -> &str {
        self.table.as_deref().unwrap_or(Self::TABLE)
    }

    /// Name of the table of tokens: `token`, or that of the records followed by `_token`.
    pub(crate) fn token_name(&self) -> String {
        match self.record_name() {
            Self::TABLE => "token".to_owned(),
            table => format!("{table}_token"),
        }
    }

    /// The table of records, in a statement.
    pub(crate) fn record(&self) -> String {
        format!("{}.{}", identifier(self.schema_name()), identifier(self.record_name()))
    }

    /// The table of tokens, in a statement.
    pub(crate) fn token(&self) -> String {
        format!("{}.{}", identifier(self.schema_name()), identifier(&self.token_name()))
    }

    /// The channel of notifications. Two stores of one database may share a channel: that costs spurious hints.
    pub(crate) fn channel(&self) -> String {
        let channel = format!("tenure:{}.{}", self.schema_name(), self.record_name());
        if channel.len() <= NAME_MAX {
            return channel;
        }
        // FNV-1a.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = channel.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        format!("tenure:{hash:016x}")
    }
}

/// Checks the name of a schema or a table.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), OpenError> {
    let plain = !name.chars().any(|next| next.is_control() || next == '\\');
    // The table of tokens has a longer name.
    let max = if what == "table" { NAME_MAX - "_token".len() } else { NAME_MAX };
    if plain && (1..=max).contains(&name.len()) && !(what == "schema" && name.starts_with("pg_")) {
        return Ok(());
    }
    let first = if what == "schema" { ", and does not begin with pg_" } else { "" };
    Err(OpenError::invalid(format!(
        "{name:?} is not the name of a {what}: it has 1 to {max} bytes, without backslashes and control characters{first}"
    )))
}

/// Longest name of a schema, a table or a channel, in bytes. PostgreSQL cuts longer ones off.
const NAME_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(schema: &str, table: &str) -> Tables {
        Tables { schema: Some(schema.to_owned()), table: Some(table.to_owned()) }
    }

    #[test]
    fn names_are_quoted_and_the_usual_ones_are_short() {
        assert_eq!(Tables::USUAL.record(), r#""tenure"."record""#);
        assert_eq!(Tables::USUAL.token(), r#""tenure"."token""#);
        let hostile = tables("a\"; DROP", "Jobs");
        assert_eq!(hostile.record(), r#""a""; DROP"."Jobs""#);
        assert_eq!(hostile.token(), r#""a""; DROP"."Jobs_token""#);
    }

    #[test]
    fn a_channel_is_never_longer_than_postgresql_allows() {
        assert_eq!(Tables::USUAL.channel(), "tenure:tenure.record");
        let (one, two) = (tables(&"x".repeat(63), "a"), tables(&"x".repeat(63), "b"));
        assert!(one.channel().len() <= 63 && one.channel() != two.channel());
    }

    #[test]
    fn names_that_postgresql_would_cut_off_are_refused() {
        assert!(check_name("schema", &"x".repeat(63)).is_ok());
        for (what, name) in [("schema", "x".repeat(64)), ("table", "x".repeat(58)), ("table", String::new())]
        {
            assert!(check_name(what, &name).is_err(), "{name}");
        }
        let own = check_name("schema", "pg_catalog").unwrap_err().to_string();
        assert!(own.ends_with("does not begin with pg_"), "{own}");
        assert!(check_name("table", "a\\b").is_err());
    }
}
