use tenure_store::{Expect, Key, Purpose, Reason, StoreError, Version, Write};
use tokio_postgres::types::{ToSql, Type};

use crate::stamp;
use crate::statements::Statements;
use crate::store::VALUE_MAX;

/// A conditional write of one row, as its statement needs it.
pub(crate) struct ConditionalWrite<'a> {
    key: &'a str,
    value: &'a [u8],
    /// The stamp of the new row.
    stamp: String,
    /// The version of the row to replace; `None` if the key must have none.
    expected: Option<&'a Version>,
    expected_text: &'a str,
    purpose: Purpose,
    /// The token of a grant.
    token: Option<i64>,
}

impl<'a> ConditionalWrite<'a> {
    /// Refuses a value or a token that no row can have.
    pub(crate) fn new(key: &'a Key, write: &'a Write) -> Result<Self, StoreError> {
        let invalid = |sentence: String| StoreError::refused(Reason::Invalid, sentence);
        if write.value.len() > VALUE_MAX {
            let length = write.value.len();
            return Err(invalid(format!("a value has at most {VALUE_MAX} bytes, and this one has {length}")));
        }
        let token = match write.purpose {
            Purpose::Grant { token } => Some(
                i64::try_from(token)
                    .map_err(|_| invalid(format!("the token {token} is too large for a bigint")))?,
            ),
            _ => None,
        };
        let expected = match &write.expect {
            Expect::Absent => None,
            Expect::Version(version) => Some(version),
        };
        Ok(Self {
            key: key.as_str(),
            value: &write.value,
            stamp: stamp::next(expected)?,
            expected,
            expected_text: expected.map(Version::as_str).unwrap_or_default(),
            purpose: write.purpose,
            token,
        })
    }

    /// True if the server may have to wait for a lock. A renewal waits only if another session writes the same row.
    pub(crate) fn may_wait(&self) -> bool {
        !matches!(self.purpose, Purpose::Renewal | Purpose::Resumption)
    }

    pub(crate) fn statement<'s>(&self, statements: &'s Statements) -> &'s str {
        match (self.expected, self.purpose) {
            (None, Purpose::Grant { .. }) => &statements.create_granted,
            (None, _) => &statements.create,
            (Some(_), Purpose::Grant { .. }) => &statements.grant,
            (Some(_), Purpose::Renewal | Purpose::Resumption) => &statements.renew,
            (Some(_), _) => &statements.replace,
        }
    }

    /// The parameters of the statement, in its order.
    pub(crate) fn parameters(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            vec![(&self.key, Type::TEXT), (&self.stamp, Type::TEXT), (&self.value, Type::BYTEA)];
        if self.expected.is_some() {
            parameters.push((&self.expected_text, Type::TEXT));
        }
        if let Some(token) = &self.token {
            parameters.push((token, Type::INT8));
        }
        parameters
    }

    pub(crate) fn expected(&self) -> Option<&'a Version> {
        self.expected
    }

    pub(crate) fn token(&self) -> Option<i64> {
        self.token
    }

    /// The version of the new row on this server process.
    pub(crate) fn version_on(&self, server: &str) -> Version {
        stamp::version(server, &self.stamp)
    }
}
