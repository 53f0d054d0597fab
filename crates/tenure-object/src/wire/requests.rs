use std::sync::atomic::{AtomicU64, Ordering};

/// How many requests a store has sent, as its provider counts and bills them. Those for credentials are not among them.
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

/// The same while it is counted.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
}

impl Counter {
    pub(crate) fn count(&self, request: &http::request::Parts) {
        let is_list = request.uri.query().is_some_and(|query| query.contains("list-type="));
        let counted = match request.method {
            http::Method::PUT => &self.puts,
            _ if is_list => &self.lists,
            _ => &self.gets,
        };
        counted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn so_far(&self) -> Requests {
        Requests {
            puts: self.puts.load(Ordering::Relaxed),
            gets: self.gets.load(Ordering::Relaxed),
            lists: self.lists.load(Ordering::Relaxed),
        }
    }
}
