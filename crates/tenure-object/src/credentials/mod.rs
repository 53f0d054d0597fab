//! Credentials that a service hands out for a while: fetched, kept, and fetched again before they expire.
//!
//! The client library has providers for every service, and caches their credentials. Its cache is not enough for a
//! lease. It fails a call if a refresh fails, although the old credentials are valid. It keeps credentials that the
//! server has refused. It counts on a clock that stops in suspend, and it hides when the credentials expire. So Tenure
//! builds a new provider of the client for each fetch, which asks the service exactly once, and keeps the result
//! itself ([`KeptCredentials`]). A hook below the client ([`FetchConnector`]) records the answers of the service: they
//! say how long the credentials live, and why there are none.

mod fetch;
mod fetch_answer;
mod fetch_connector;
mod fetch_error;
mod kept;
mod text;

use fetch::Fetched;
pub(crate) use fetch::fetch;
pub(crate) use fetch_connector::{FetchConnector, FetchRules};
pub(crate) use fetch_error::FetchError;
pub(crate) use kept::{KeptCredentials, Mark, Replaceable};
pub(crate) use text::{CONTROL, FLAW, fits_header, has_control, read_token};
