//! Leases in a bucket: AWS S3, and servers with the same API.

mod builder;
mod classify;
mod credentials;
mod endpoint;
mod environment;
mod error;
mod etag_quoting;
mod network;
mod profile;
mod provider;
mod read;
mod read_cache;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use tenure_store::{
    Applied, BoxStream, Conflict, Expect, Guarantees, Identity, Key, Prefix, Put, Reading, Reason, Scratch,
    Store, StoreError, StoreFuture, Version,
};

pub use builder::S3Builder;
use classify::{AnswerMeaning, RequestKind};
pub use environment::Environment;
pub use error::OpenError;
use etag_quoting::EtagQuoting;
use read_cache::ReadCache;

use crate::Requests;
use crate::name::Names;
use crate::wire::{Call, CallState, Connector, ServerAnswer};

/// A store in a bucket. Clones are the same store.
///
/// It must be polled inside a tokio runtime that has io and time enabled. A call sends one request, whatever its result
/// (a listing: one for each page), and never repeats it.
#[derive(Clone)]
pub struct S3(Arc<S3Inner>);

struct S3Inner {
    client: AmazonS3,
    connector: Connector,
    names: Names,
    bucket: String,
    offered_by: &'static str,
    bare_etags: bool,
    read_cache: ReadCache,
    etag_quoting: EtagQuoting,
    guarantees: Guarantees,
    url: String,
    place: String,
}

impl S3 {
    /// Maximum size of a value, in bytes: the maximum size of a record.
    pub const VALUE_MAX: usize = 64 * 1024;

    /// Returns a builder for the store in this bucket.
    pub fn builder(bucket: &str) -> S3Builder {
        S3Builder::new(bucket)
    }

    /// Number of requests that this store has sent since it was opened.
    pub fn requests(&self) -> Requests {
        self.0.connector.requests()
    }

    /// The provider of the bucket, such as `AWS S3`, by the address of the endpoint; `None` for a private server.
    pub fn offered_by(&self) -> Option<&'static str> {
        Some(self.0.offered_by).filter(|name| !name.is_empty())
    }

    /// Name of the object that stores this key, for operators.
    pub fn object_of(&self, key: &Key) -> String {
        self.0.names.of(key)
    }
}

impl S3Inner {
    async fn put(&self, key: &Key, value: Bytes, expect: Expect) -> Result<Put, StoreError> {
        if value.len() > S3::VALUE_MAX {
            let what =
                format!("a value has at most {} bytes, and this one has {}", S3::VALUE_MAX, value.len());
            return Err(StoreError::refused(Reason::Invalid, what));
        }
        let path = self.path(key)?;
        // A read that follows this write must show the server's state, and not the cached value.
        let _writing = self.read_cache.writing(key);
        let (asked, mode) = match &expect {
            Expect::Absent => (RequestKind::Create, PutMode::Create),
            Expect::Version(version) => (RequestKind::Replace, PutMode::Update(self.update(version))),
        };
        let call = Call::default();
        let options = PutOptions { mode, extensions: call.extensions(), ..PutOptions::default() };
        let result = self.client.put_opts(&path, value.into(), options).await;
        let answer = self.answer(asked, &call, result.as_ref().err())?;
        let meaning = classify::classify(asked, &answer);
        if let Expect::Version(version) = &expect {
            match meaning {
                AnswerMeaning::Done => self.etag_quoting.applied(),
                // With 404 the object was deleted.
                AnswerMeaning::Conflict if answer.status == 412 => self.etag_quoting.refused(key, version),
                _ => {}
            }
        }
        match meaning {
            AnswerMeaning::Conflict => Ok(Put::Conflict(Conflict)),
            AnswerMeaning::Done => match result.map(|done| done.e_tag) {
                Ok(Some(etag)) => Ok(Put::Applied(Applied::new(Version::new(etag)).with_time(answer.time()))),
                // The write was applied. A read must find its version.
                Ok(None) => Err(StoreError::unknown("the write was answered without an ETag")),
                Err(error) => Err(StoreError::unknown(error)),
            },
            other => Err(self.error(asked, other, &answer)),
        }
    }

    /// One page of a listing: the keys, and the start of the next page.
    async fn page(
        &self,
        prefix: &Prefix,
        token: Option<String>,
    ) -> Result<(Vec<Key>, Option<String>), StoreError> {
        let begin = self.names.prefix_of(prefix);
        let call = Call::default();
        let options = PaginatedListOptions {
            page_token: token.clone(),
            extensions: call.extensions(),
            ..PaginatedListOptions::default()
        };
        let begin = (!begin.is_empty()).then_some(begin.as_str());
        let result = self.client.list_paginated(begin, options).await;
        let answer = self.answer(RequestKind::List, &call, result.as_ref().err())?;
        let page = match classify::classify(RequestKind::List, &answer) {
            AnswerMeaning::Done => result.map_err(unreadable)?,
            other => return Err(self.error(RequestKind::List, other, &answer)),
        };
        if page.page_token.is_some() && page.page_token == token {
            return Err(StoreError::unknown(
                "the listing does not advance: the server returned the same page again",
            ));
        }
        let names = page.result.objects.iter().map(|object| object.location.as_ref());
        let keys = names.filter_map(|name| self.names.key(name)).filter(|key| prefix.covers(key));
        Ok((keys.collect(), page.page_token))
    }

    /// The client's report is sufficient here: no safety property depends on it.
    async fn sweep(&self, key: &Key) -> Result<(), StoreError> {
        key.must_be_sweepable()?;
        match self.client.delete(&self.path(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(
                object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. },
            ) => {
                let words = format!(
                    "the credentials may not delete: s3:DeleteObject is not allowed on {}",
                    self.bucket
                );
                Err(StoreError::refused(Reason::Denied, words))
            }
            Err(error) => Err(StoreError::unknown(error)),
        }
    }

    fn path(&self, key: &Key) -> Result<Path, StoreError> {
        Path::parse(self.names.of(key)).map_err(|error| StoreError::refused(Reason::Invalid, error))
    }

    fn update(&self, version: &Version) -> UpdateVersion {
        UpdateVersion { e_tag: Some(self.etag(version)), version: None }
    }

    /// A version in the form that the server accepts.
    fn etag(&self, version: &Version) -> String {
        let etag = version.as_str();
        if self.bare_etags { etag.trim_matches('"').to_owned() } else { etag.to_owned() }
    }

    /// The answer, or the reason why there was none.
    fn answer(
        &self,
        asked: RequestKind,
        call: &Call,
        error: Option<&object_store::Error>,
    ) -> Result<ServerAnswer, StoreError> {
        match call.seen() {
            CallState::Answered(answer) => Ok(*answer),
            CallState::NotConnected(why) => Err(StoreError::refused(Reason::Unreachable, why)),
            CallState::Cut(why) if matches!(asked, RequestKind::Create | RequestKind::Replace) => {
                Err(StoreError::unknown(format!("the write was sent and not answered: {why}")))
            }
            CallState::Cut(why) => Err(StoreError::unknown(why)),
            CallState::NotSent => {
                let why = error.map(ToString::to_string).unwrap_or_default();
                Err(StoreError::refused(
                    Reason::Denied,
                    format!("there are no credentials to sign with: {why}"),
                ))
            }
        }
    }

    /// The error for an answer that is not a result.
    fn error(&self, asked: RequestKind, meaning: AnswerMeaning, answer: &ServerAnswer) -> StoreError {
        let words = classify::words(asked, answer, &self.bucket);
        match meaning {
            AnswerMeaning::Throttled => StoreError::throttled(answer.retry_after),
            AnswerMeaning::Refused(reason) => StoreError::refused(reason, words),
            AnswerMeaning::Unknown
            | AnswerMeaning::Done
            | AnswerMeaning::Absent
            | AnswerMeaning::Unchanged
            | AnswerMeaning::Conflict => StoreError::unknown(words),
        }
    }
}

/// Error of a successful answer whose content cannot be used.
fn unreadable(error: object_store::Error) -> StoreError {
    StoreError::unknown(format!("its answer cannot be read: {error}"))
}

impl Store for S3 {
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(self.0.get(key))
    }

    fn put<'a>(&'a self, key: &'a Key, value: Bytes, expect: Expect) -> StoreFuture<'a, Put> {
        Box::pin(self.0.put(key, value, expect))
    }

    /// Lists in the order of names, as far as the server has an order; a thousand keys per request.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        // Each page has a token that requests the next one. The first request has none, and the last page has none.
        let pages = stream::try_unfold(Some(None), async move |next: Option<Option<String>>| {
            let Some(token) = next else { return Ok::<_, StoreError>(None) };
            let (keys, token) = self.0.page(prefix, token).await?;
            Ok(Some((stream::iter(keys.into_iter().map(Ok)), token.map(Some))))
        });
        pages.try_flatten().boxed()
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }

    /// The impossible version looks like an ETag. It is practically impossible that it is the hash of any content. The
    /// place contains endpoint, bucket and prefix, and the way to reach them: a policy of the bucket may differ by
    /// prefix, and a proxy may have its own cache.
    fn identity(&self) -> Identity {
        Identity::new(Version::new("\"00000000000000000000000000000000\"")).with_place(&self.0.place)
    }
}

impl Scratch for S3 {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        Box::pin(self.0.sweep(key))
    }
}

impl fmt::Display for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.url)
    }
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3").field("url", &self.0.url).finish_non_exhaustive()
    }
}
