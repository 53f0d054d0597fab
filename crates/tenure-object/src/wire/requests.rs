use std::sync::{Mutex, PoisonError};

/// Number of requests that a store has sent, as its provider counts and bills them. Requests for credentials do not
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requests {
    /// Conditional writes.
    pub puts: u64,
    /// Reads.
    pub gets: u64,
    /// Pages of listings.
    pub lists: u64,
}

/// The counters behind [`Requests`].
#[derive(Debug, Default)]
pub(crate) struct Counter(Mutex<Requests>);

impl Counter {
    pub(crate) fn count(&self, request: &http::request::Parts) {
        // S3 and Google, and Azure.
        let is_list = |query: &str| query.contains("list-type=") || query.contains("comp=list");
        let is_list = request.uri.query().is_some_and(is_list);
        let mut so_far = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match request.method {
            http::Method::PUT => so_far.puts += 1,
            _ if is_list => so_far.lists += 1,
            _ => so_far.gets += 1,
        }
    }

    pub(crate) fn so_far(&self) -> Requests {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
