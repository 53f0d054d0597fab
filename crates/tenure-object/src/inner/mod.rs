//! The store that all dialects share: one object for each key, replaced by conditional writes.

mod dialect;
mod meaning;
mod read;
mod read_cache;
mod version_form;
pub(crate) mod words;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tenure_store::{
    Applied, BoxStream, Conflict, Expect, Guarantees, Identity, Key, Listed, Prefix, Put, Reading, Reason,
    Scratch, Stamp, Store, StoreError, StoreFuture, Version, Write,
};

pub(crate) use dialect::Dialect;
pub(crate) use meaning::{AnswerMeaning, CredentialsFlaw, RequestKind};
use read_cache::ReadCache;
use version_form::VersionForm;

use crate::Requests;
use crate::credentials::{FetchError, Mark, Replaceable};
use crate::name::Names;
use crate::wire::{Call, CallState, Connector, ServerAnswer};

/// A store in a bucket or container, in one dialect. A call sends one request, whatever its result (a listing: one for
/// each page), and never repeats it.
pub(crate) struct InnerStore<D: Dialect> {
    client: D::Client,
    dialect: D,
    credentials: Option<Arc<dyn Replaceable>>,
    connector: Connector,
    names: Names,
    read_cache: ReadCache,
    version_form: VersionForm,
    guarantees: Guarantees,
    url: String,
    place: String,
}

/// The parts of a store that its builder found.
pub(crate) struct Parts<D: Dialect> {
    pub(crate) client: D::Client,
    pub(crate) dialect: D,
    /// The provider of the client, if the credentials are fetched.
    pub(crate) credentials: Option<Arc<dyn Replaceable>>,
    pub(crate) connector: Connector,
    pub(crate) names: Names,
    pub(crate) guarantees: Guarantees,
    /// Name of the store: the same for every caller.
    pub(crate) url: String,
    /// The store and the way to reach it: a policy of the bucket may differ by prefix, and a proxy may have its own
    /// cache.
    pub(crate) place: String,
}

impl<D: Dialect> InnerStore<D> {
    pub(crate) fn new(parts: Parts<D>) -> Self {
        let Parts { client, dialect, credentials, connector, names, guarantees, url, place } = parts;
        Self {
            client,
            dialect,
            credentials,
            connector,
            names,
            read_cache: ReadCache::default(),
            version_form: VersionForm::default(),
            guarantees,
            url,
            place,
        }
    }

    pub(crate) fn dialect(&self) -> &D {
        &self.dialect
    }

    pub(crate) fn requests(&self) -> Requests {
        self.connector.requests()
    }

    pub(crate) fn object_of(&self, key: &Key) -> String {
        self.names.of(key)
    }

    async fn send_write(&self, key: &Key, value: Bytes, expect: Expect) -> Result<Put, StoreError> {
        let max = self.guarantees.value_max;
        if value.len() > max {
            let what = format!("a value has at most {max} bytes, and this one has {}", value.len());
            return Err(StoreError::refused(Reason::Invalid, what));
        }
        let path = self.path(key)?;
        // A read that follows this write must show the server's state, and not the cached value.
        let _writing = self.read_cache.writing(key);
        let (asked, mode) = match &expect {
            Expect::Absent => (RequestKind::Create, PutMode::Create),
            Expect::Version(version) => {
                (RequestKind::Replace, PutMode::Update(self.dialect.condition(version)))
            }
        };
        let (call, began) = (Call::default(), self.mark());
        let options = PutOptions { mode, extensions: call.extensions(), ..PutOptions::default() };
        let result = self.client.put_opts(&path, value.into(), options).await;
        let answer = self.answer(asked, &call, result.as_ref().err())?;
        let meaning = self.meaning(asked, &answer, began);
        if let Expect::Version(version) = &expect {
            match meaning {
                AnswerMeaning::Done => self.version_form.applied(),
                // With 404 the object was deleted.
                AnswerMeaning::Conflict if answer.status == 412 => self.version_form.refused(key, version),
                _ => {}
            }
        }
        match meaning {
            AnswerMeaning::Conflict => Ok(Put::Conflict(Conflict)),
            AnswerMeaning::Done => match result.map(|done| self.dialect.version(done.e_tag, done.version)) {
                Ok(Some(version)) => Ok(Put::Applied(Applied::new(version).with_time(answer.time()))),
                // The write was applied. A read must find its version.
                Ok(None) => Err(StoreError::unknown("the write was answered without a version")),
                Err(error) => Err(StoreError::unknown(error)),
            },
            other => Err(self.error(asked, other, &answer)),
        }
    }

    /// All pages of a listing. Lists in the order of names, as far as the server has an order; a thousand keys per
    /// request.
    fn pages<'a>(
        &'a self,
        prefix: &'a Prefix,
    ) -> impl Stream<Item = Result<(Key, ObjectMeta), StoreError>> + Send + 'a {
        // Each page has a token that requests the next one. The first request has none, and the last page has none.
        let pages = stream::try_unfold(Some(None), async move |next: Option<Option<String>>| {
            let Some(token) = next else { return Ok::<_, StoreError>(None) };
            let (objects, token) = self.page(prefix, token).await?;
            Ok(Some((stream::iter(objects.into_iter().map(Ok)), token.map(Some))))
        });
        pages.try_flatten()
    }

    /// One page of a listing: the objects of keys, and the start of the next page.
    async fn page(
        &self,
        prefix: &Prefix,
        token: Option<String>,
    ) -> Result<(Vec<(Key, ObjectMeta)>, Option<String>), StoreError> {
        let begin = self.names.prefix_of(prefix);
        let (call, began) = (Call::default(), self.mark());
        let options = PaginatedListOptions {
            page_token: token.clone(),
            extensions: call.extensions(),
            ..PaginatedListOptions::default()
        };
        let begin = (!begin.is_empty()).then_some(begin.as_str());
        let result = self.client.list_paginated(begin, options).await;
        let answer = self.answer(RequestKind::List, &call, result.as_ref().err())?;
        let page = match self.meaning(RequestKind::List, &answer, began) {
            AnswerMeaning::Done => result.map_err(unreadable)?,
            other => return Err(self.error(RequestKind::List, other, &answer)),
        };
        if page.page_token.is_some() && page.page_token == token {
            return Err(StoreError::unknown(
                "the listing does not advance: the server returned the same page again",
            ));
        }
        let objects = page.result.objects.into_iter();
        let named = objects.filter_map(|object| Some((self.names.key(object.location.as_ref())?, object)));
        Ok((named.filter(|(key, _)| prefix.covers(key)).collect(), page.page_token))
    }

    /// The client's report is sufficient here: no safety property depends on it.
    async fn remove(&self, key: &Key) -> Result<(), StoreError> {
        key.must_be_sweepable()?;
        match self.client.delete(&self.path(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) if self.dialect.is_denied(&error) => {
                Err(StoreError::refused(Reason::Denied, self.dialect.may_not_delete()))
            }
            Err(error) => match FetchError::within(&error) {
                Some(error) => Err(error.into()),
                None => Err(StoreError::unknown(error)),
            },
        }
    }

    fn path(&self, key: &Key) -> Result<Path, StoreError> {
        Path::parse(self.names.of(key)).map_err(|error| StoreError::refused(Reason::Invalid, error))
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
            CallState::Cut(why) if asked.is_write() => {
                Err(StoreError::unknown(format!("the write was sent and not answered: {why}")))
            }
            CallState::Cut(why) => Err(StoreError::unknown(why)),
            CallState::NotSent => match error.and_then(FetchError::within) {
                Some(error) => Err(error.into()),
                None => {
                    let why = error.map(ToString::to_string).unwrap_or_default();
                    Err(StoreError::refused(Reason::Denied, format!("the request cannot be signed: {why}")))
                }
            },
        }
    }

    /// The fetches of credentials before a call.
    fn mark(&self) -> Mark {
        self.credentials.as_ref().map(|credentials| credentials.mark()).unwrap_or_default()
    }

    fn meaning(&self, asked: RequestKind, answer: &ServerAnswer, began: Mark) -> AnswerMeaning {
        if answer.is_from_a_cache() {
            // It says nothing about the store's present state. For a write it says nothing at all.
            return if asked.is_write() {
                AnswerMeaning::Unknown
            } else {
                AnswerMeaning::Refused(Reason::Unsupported)
            };
        }
        if let Some(credentials) = &self.credentials
            && let Some(flaw) = self.dialect.credentials_flaw(answer)
        {
            // The next call fetches others. It cannot have more success if the server does not know even new ones.
            let may_pass = credentials.refused(began) || flaw == CredentialsFlaw::Expired;
            return AnswerMeaning::Refused(if may_pass { Reason::Unreachable } else { Reason::Denied });
        }
        self.dialect.classify(asked, answer)
    }

    /// The error for an answer that is not a result.
    fn error(&self, asked: RequestKind, meaning: AnswerMeaning, answer: &ServerAnswer) -> StoreError {
        let words = match meaning {
            AnswerMeaning::Refused(Reason::Unreachable)
                if self.dialect.credentials_flaw(answer).is_some() =>
            {
                words::with(Some(WORN_OUT.to_owned()), answer)
            }
            _ => words::of(&self.dialect, asked, answer),
        };
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

/// Message for fetched credentials that the server no longer accepts.
const WORN_OUT: &str = "it no longer accepts the credentials, and the next call fetches new ones";

/// The entry of a listed object.
fn listed(key: Key, meta: &ObjectMeta) -> Result<Listed, StoreError> {
    let Some(etag) = meta.e_tag.as_deref() else {
        let what = format!("{} was listed without an ETag", meta.location);
        return Err(StoreError::refused(Reason::Unsupported, what));
    };
    Ok(Listed::new(key, Stamp::new(etag).with_size(Some(meta.size))))
}

/// Error of a successful answer whose content cannot be used.
fn unreadable(error: object_store::Error) -> StoreError {
    StoreError::unknown(format!("its answer cannot be read: {error}"))
}

impl<D: Dialect> Store for InnerStore<D> {
    fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(self.read(key))
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(self.send_write(key, write.value, write.expect))
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.pages(prefix).map_ok(|(key, _)| key).boxed()
    }

    /// A listing shows the ETag of each object.
    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        Some(self.pages(prefix).map(|object| object.and_then(|(key, meta)| listed(key, &meta))).boxed())
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new(D::IMPOSSIBLE_VERSION)).with_place(&self.place)
    }
}

impl<D: Dialect> Scratch for InnerStore<D> {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        Box::pin(self.remove(key))
    }
}

impl<D: Dialect> fmt::Display for InnerStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl<D: Dialect> fmt::Debug for InnerStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(D::PROTOCOL).field("url", &self.url).finish_non_exhaustive()
    }
}

/// Implements [`Store`] for a public type around `Arc<InnerStore<…>>`.
macro_rules! store_over_inner {
    ($store:ident) => {
        impl $store {
            /// Maximum size of a value, in bytes: the maximum size of a record.
            pub const VALUE_MAX: usize = $crate::inner::VALUE_MAX;

            /// Maximum size of a value in a store with exact names, in bytes.
            pub const OBJECT_MAX: usize = $crate::inner::OBJECT_MAX;

            /// Number of requests that this store has sent since it was opened.
            pub fn requests(&self) -> $crate::Requests {
                self.0.requests()
            }

            /// Name of the object that stores this key, for operators.
            pub fn object_of(&self, key: &tenure_store::Key) -> String {
                self.0.object_of(key)
            }
        }

        impl tenure_store::Store for $store {
            fn guarantees(&self) -> tenure_store::Guarantees {
                self.0.guarantees()
            }

            fn identity(&self) -> tenure_store::Identity {
                self.0.identity()
            }

            fn get<'a>(
                &'a self,
                key: &'a tenure_store::Key,
            ) -> tenure_store::StoreFuture<'a, tenure_store::Reading> {
                self.0.get(key)
            }

            fn write<'a>(
                &'a self,
                key: &'a tenure_store::Key,
                write: tenure_store::Write,
            ) -> tenure_store::StoreFuture<'a, tenure_store::Put> {
                self.0.write(key, write)
            }

            fn list<'a>(
                &'a self,
                prefix: &'a tenure_store::Prefix,
            ) -> tenure_store::BoxStream<'a, Result<tenure_store::Key, tenure_store::StoreError>> {
                self.0.list(prefix)
            }

            fn list_stamped<'a>(
                &'a self,
                prefix: &'a tenure_store::Prefix,
            ) -> Option<tenure_store::BoxStream<'a, Result<tenure_store::Listed, tenure_store::StoreError>>>
            {
                self.0.list_stamped(prefix)
            }

            fn scratch(&self) -> Option<&dyn tenure_store::Scratch> {
                self.0.scratch()
            }
        }

        impl std::fmt::Display for $store {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::fmt::Debug for $store {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

pub(crate) use store_over_inner;

/// Maximum size of a value, in bytes: the maximum size of a record.
pub(crate) const VALUE_MAX: usize = 64 * 1024;

/// Maximum size of a value in a store with exact names, in bytes: one request transfers it within its timeout.
pub(crate) const OBJECT_MAX: usize = 64 << 20;
