use tenure_core::Token;
use tenure_fence::{FenceError, FencingToken};
use tenure_store::Key;

use super::PostgresFence;
use super::server_error::ServerError;

/// A call of the fence that failed: turns the answer of the server into the error of the contract.
pub(super) struct Refusal<'a> {
    pub(super) fence: &'a PostgresFence,
    pub(super) offered: &'a FencingToken,
    /// The greatest token that the call was sent with.
    pub(super) seen: u64,
}

impl Refusal<'_> {
    /// The error of a call inside a transaction. Whatever it is, the transaction cannot be committed any more: PostgreSQL has
    /// ended it, or has marked it as failed, and then answers COMMIT with ROLLBACK.
    pub(super) fn in_transaction(&self, answer: &ServerError<'_>) -> FenceError {
        let resource = self.fence.resource().to_owned();
        match answer.code {
            "TF001" | "TF002" | "TF003" | "TF004" => self.by_token(answer),
            _ => FenceError::Refused { resource, reason: answer.reason(), source: self.words(answer).into() },
        }
    }

    /// The error of a call in a transaction of its own, which may have been committed.
    pub(super) fn of_own_transaction(&self, answer: &ServerError<'_>) -> FenceError {
        if answer.may_be_applied() {
            return FenceError::unknown(self.fence.resource(), answer.words());
        }
        self.in_transaction(answer)
    }

    /// The error of a call that was answered with something else than a mark.
    pub(super) fn of_answer(&self) -> FenceError {
        let schema = self.fence.schema().name();
        let what = format!(
            "the function fence in the schema {schema:?} is not the one of Tenure's migration. Roll back"
        );
        FenceError::Foreign { resource: self.fence.resource().to_owned(), what }
    }

    fn by_token(&self, answer: &ServerError<'_>) -> FenceError {
        let resource = self.fence.resource().to_owned();
        let Some((token, lease)) = answer.detail.and_then(mark) else { return self.of_mark(answer) };
        let offered = self.offered.clone();
        match answer.code {
            "TF001" => FenceError::Stale { resource, offered, highest: token },
            "TF003" => FenceError::NotGranted { resource, offered, granted: token },
            "TF004" => {
                let seen = Token::new(self.seen).unwrap_or(Token::MAX);
                FenceError::WentBack { resource, offered, seen, shown: token }
            }
            _ => match FencingToken::new(lease, token) {
                Ok(mark) => FenceError::OtherLease { resource, offered, mark },
                Err(_) => self.of_mark(answer),
            },
        }
    }

    /// The error of a row that no function of Tenure wrote.
    fn of_mark(&self, answer: &ServerError<'_>) -> FenceError {
        let what = format!(
            "its row in the table {} has no valid token or lease: correct it by hand ({})",
            self.fence.schema().marks(),
            answer.words()
        );
        FenceError::Foreign { resource: self.fence.resource().to_owned(), what }
    }

    /// The cause of an error and the next step.
    fn words(&self, answer: &ServerError<'_>) -> String {
        let schema = self.fence.schema();
        let (name, tokens) = (schema.name(), schema.tokens());
        let advice = match answer.code {
            // The message is Tenure's own.
            "TF005" | "TF006" => return answer.words(),
            "42883" | "3F000" => format!(
                "the fences are not installed in the schema {name:?} of this database: an administrator runs the \
                 statements of FenceSchema::migration"
            ),
            "42P01" if self.fence.has_lease_here() => format!(
                "the table {tokens} of the leases or the table {} of the fences does not exist: create the tables of the \
                 store, and run the statements of FenceSchema::migration",
                schema.marks()
            ),
            "42P01" => format!(
                "the table {} does not exist: an administrator runs the statements of FenceSchema::migration",
                schema.marks()
            ),
            "42501" => format!(
                "the role may not call the fence in the schema {name:?}: an administrator runs the statements of \
                 FenceSchema::rights"
            ),
            "40001" | "40P01" => {
                "another transaction was in the way: roll back, and run the transaction again".to_owned()
            }
            "55P03" => "the transaction of another holder is still open: roll back, and run the transaction again".to_owned(),
            "57014" => "the server cancelled the call: roll back, and run the transaction again".to_owned(),
            "25P02" => "a statement before the fence has failed: roll back, and begin with the fence".to_owned(),
            "25006" => "the server or the transaction only reads, and a fence writes its mark".to_owned(),
            "22021" | "22P05" => {
                "the encoding of the database lacks a character of the resource or the lease: use a database with UTF8"
                    .to_owned()
            }
            "22P02" => "the setting tenure.fenced of this session is not Tenure's: reset it".to_owned(),
            code if code.starts_with("42") || code.starts_with("23") => {
                format!("the table {} is not as the migration creates it", schema.marks())
            }
            _ => "the fence failed: roll back, and run the transaction again".to_owned(),
        };
        format!("{advice} ({})", answer.words())
    }
}

/// The mark in the detail of a refusal: `token TOKEN of lease NAME`.
fn mark(detail: &str) -> Option<(Token, Key)> {
    let (token, lease) = detail.strip_prefix("token ")?.split_once(" of lease ")?;
    Some((token.parse().ok()?, Key::from_stored(lease).ok()?))
}

/// Attempts of a seal that the server rolled back because of another transaction.
pub(super) const TRIES_MAX: u32 = 8;
