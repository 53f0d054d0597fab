use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tenure::Error;
use tenure_store::{Guarantees, Key, Store};

use crate::UrlError;

/// The URL of a store: parsed, and one that this build can open.
///
/// The store of one object, and the key of the object in it.
pub type ObjectPlace = (Arc<dyn Store>, Key);

/// Its `Display` is canonical: parsing it gives an equal URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl(StorePlace);

/// Location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StorePlace {
    #[cfg(feature = "file")]
    File(crate::file::FilePlace),
    #[cfg(feature = "memory")]
    Memory(crate::memory::MemoryPlace),
    #[cfg(feature = "redis")]
    Redis(crate::redis::RedisPlace),
    #[cfg(feature = "s3")]
    S3(crate::s3::S3Place),
    #[cfg(feature = "az")]
    Azure(crate::azure::AzurePlace),
    #[cfg(feature = "gs")]
    Google(crate::google::GooglePlace),
    #[cfg(feature = "postgres")]
    Postgres(crate::postgres::PostgresPlace),
}

impl StoreUrl {
    /// The store in this directory, with no risk accepted. The path must be absolute.
    #[cfg(feature = "file")]
    pub fn of_directory(path: impl AsRef<std::path::Path>) -> Result<Self, UrlError> {
        crate::file::FilePlace::new(path.as_ref()).map(StorePlace::File).map(Self)
    }

    /// Opens the store, and creates missing parts.
    pub fn open(&self) -> Result<Arc<dyn Store>, Error> {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => place.open(),
            #[cfg(feature = "memory")]
            StorePlace::Memory(place) => Ok(place.open()),
            #[cfg(feature = "redis")]
            StorePlace::Redis(place) => place.open(),
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => place.open(),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => place.open(),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => place.open(),
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => place.open(),
        }
    }

    /// Opens the bucket of one object, which the path of the URL names exactly, as in `s3://bucket/reports/today.csv`.
    /// Returns the store and the key of the object, for `FencedValue::on`; `None` if the URL is not that of a bucket or
    /// container.
    ///
    /// A key of this store is the exact name of its object, and a value has up to 64 MiB.
    pub fn open_object(&self) -> Result<Option<ObjectPlace>, Error> {
        match &self.0 {
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => place.open_object().map(Some),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => place.open_object().map(Some),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => place.open_object().map(Some),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => Ok(None),
        }
    }

    /// Opens the store for reading, without creating or changing anything; `None` if there is no store yet, so that
    /// every key is free.
    pub fn open_to_read(&self) -> Result<Option<Arc<dyn Store>>, Error> {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => place.open_to_read(),
            #[cfg(feature = "memory")]
            StorePlace::Memory(place) => Ok(Some(place.open())),
            #[cfg(feature = "redis")]
            StorePlace::Redis(place) => place.open().map(Some),
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => place.open().map(Some),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => place.open().map(Some),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => place.open().map(Some),
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => place.open().map(Some),
        }
    }

    /// True if the store exists, as far as is known without a request: a bucket counts as existing.
    pub fn is_there(&self) -> Result<bool, Error> {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => Ok(place.open_to_read()?.is_some()),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => Ok(true),
        }
    }

    /// True if the open store has this name. Creates and sends nothing.
    pub fn is_called(&self, name: &str) -> bool {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => place.is_called(name),
            #[cfg(feature = "redis")]
            StorePlace::Redis(place) => place.is_called(name),
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => place.is_called(name),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => place.is_called(name),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => place.is_called(name),
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => place.is_called(name),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => self.to_string() == name,
        }
    }

    /// A name that two URLs of one store share, whatever links a path contains and whatever risks a URL accepts.
    /// Creates and sends nothing.
    pub fn identity(&self) -> String {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => place.identity(),
            #[cfg(feature = "redis")]
            StorePlace::Redis(place) => place.identity(),
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => place.identity().unwrap_or_else(|| self.to_string()),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => place.identity().unwrap_or_else(|| self.to_string()),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => place.identity().unwrap_or_else(|| self.to_string()),
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => place.identity().unwrap_or_else(|| self.to_string()),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => self.to_string(),
        }
    }

    /// The URL with what the environment of this process adds to it, such as the endpoint of a bucket, and without
    /// links in a path: two processes whose URLs are equal in this form address the same store. If the store cannot be
    /// opened, the URL itself.
    #[must_use]
    pub fn resolved(&self) -> Self {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => Self(StorePlace::File(place.resolved())),
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => {
                place.resolved().map_or_else(|| self.clone(), |place| Self(StorePlace::S3(place)))
            }
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => {
                place.resolved().map_or_else(|| self.clone(), |place| Self(StorePlace::Azure(place)))
            }
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => {
                place.resolved().map_or_else(|| self.clone(), |place| Self(StorePlace::Google(place)))
            }
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => {
                place.resolved().map_or_else(|| self.clone(), |place| Self(StorePlace::Postgres(place)))
            }
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => self.clone(),
        }
    }

    /// The same store with the other form of ETags, and true if that form is without quotes (`etags=bare`). `None` for
    /// a store that has no ETags.
    pub fn with_other_etags(&self) -> Option<(Self, bool)> {
        match &self.0 {
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => {
                let (place, bare) = place.with_other_etags();
                Some((Self(StorePlace::S3(place)), bare))
            }
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => None,
        }
    }

    /// The guarantees of the store, or those that it would have once it exists. Creates and sends nothing.
    pub fn guarantees(&self) -> Result<Guarantees, Error> {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => place.guarantees(),
            #[cfg(feature = "memory")]
            StorePlace::Memory(place) => Ok(place.open().guarantees()),
            #[cfg(feature = "redis")]
            StorePlace::Redis(place) => Ok(place.guarantees()),
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => Ok(place.guarantees()),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => Ok(place.guarantees()),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => Ok(place.guarantees()),
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => Ok(place.guarantees()),
        }
    }

    /// True if an operator may remove records from the store, with its
    /// [`Administration`](tenure_store::Administration).
    pub fn has_removal(&self) -> bool {
        match &self.0 {
            #[cfg(feature = "redis")]
            StorePlace::Redis(_) => false,
            #[cfg(feature = "s3")]
            StorePlace::S3(_) => false,
            #[cfg(feature = "az")]
            StorePlace::Azure(_) => false,
            #[cfg(feature = "gs")]
            StorePlace::Google(_) => false,
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(_) => false,
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => true,
        }
    }

    /// The statements that create the store, for an administrator with the right to do so; `None` if it needs none.
    /// Sends nothing.
    pub fn creation_statements(&self) -> Option<String> {
        match &self.0 {
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => Some(place.creation_statements()),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => None,
        }
    }

    /// The statements that install a fence for tables of users beside the store, for an administrator; `None` if the
    /// store is not in a database. Sends nothing.
    pub fn fence_statements(&self) -> Result<Option<String>, Error> {
        match &self.0 {
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => Ok(Some(place.fence_statements()?)),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => Ok(None),
        }
    }

    /// Creates what the store needs, unless it exists: a directory, or tables. A bucket must exist already.
    pub async fn create(&self) -> Result<(), Error> {
        match &self.0 {
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => Ok(place.store()?.create_tables().await?),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => self.open().map(drop),
        }
    }

    /// Risks of the store that are known and not refused, each in a sentence. Sends a request if the store can report
    /// any.
    pub async fn risks(&self) -> Result<Vec<String>, Error> {
        match &self.0 {
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => Ok(place.store()?.risks().await?),
            #[cfg(feature = "redis")]
            StorePlace::Redis(place) => place.risks().await,
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => Ok(Vec::new()),
        }
    }

    /// The provider of the store, such as `AWS S3`, by the address of its endpoint; `None` if there is none, or if it
    /// is unknown. Sends nothing.
    pub fn provider(&self) -> Result<Option<&'static str>, Error> {
        match &self.0 {
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => place.provider(),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => place.provider(),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => place.provider(),
            #[allow(unreachable_patterns, reason = "there may be no other store in this build")]
            _ => Ok(None),
        }
    }
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let Some((scheme, rest)) = split_scheme(text) else { return Err(no_scheme(text)) };
        match scheme.to_ascii_lowercase().as_str() {
            #[cfg(feature = "file")]
            "file" => crate::file::FilePlace::parse(rest).map(StorePlace::File).map(Self),
            #[cfg(feature = "memory")]
            "memory" => crate::memory::MemoryPlace::parse(rest).map(StorePlace::Memory).map(Self),
            #[cfg(feature = "redis")]
            scheme @ ("redis" | "rediss" | "redis+unix" | "redis+sentinel" | "rediss+sentinel") => {
                crate::redis::RedisPlace::parse(scheme, rest).map(StorePlace::Redis).map(Self)
            }
            #[cfg(feature = "s3")]
            "s3" => crate::s3::S3Place::parse(rest).map(StorePlace::S3).map(Self),
            #[cfg(feature = "az")]
            "az" => crate::azure::AzurePlace::parse(rest).map(StorePlace::Azure).map(Self),
            #[cfg(feature = "gs")]
            "gs" => crate::google::GooglePlace::parse(rest).map(StorePlace::Google).map(Self),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                crate::postgres::PostgresPlace::parse(rest).map(StorePlace::Postgres).map(Self)
            }
            scheme if is_known_elsewhere(scheme) => {
                let known = known();
                let build = FEATURES.iter().find(|(_, schemes)| schemes.contains(&scheme));
                let build = build.map_or_else(String::new, |(feature, _)| {
                    format!(
                        ": build it with the feature {feature}, as by cargo install --locked --path crates/tenure-cli \
                         --features {feature}"
                    )
                });
                Err(UrlError::new(format!(
                    "{scheme}: stores are not built into this version, which has {known}{build}"
                )))
            }
            scheme => {
                let known = known();
                Err(UrlError::new(format!("{scheme:?} is not a kind of store: this version has {known}")))
            }
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            #[cfg(feature = "file")]
            StorePlace::File(place) => place.fmt(f),
            #[cfg(feature = "memory")]
            StorePlace::Memory(place) => place.fmt(f),
            #[cfg(feature = "redis")]
            StorePlace::Redis(place) => place.fmt(f),
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => place.fmt(f),
            #[cfg(feature = "az")]
            StorePlace::Azure(place) => place.fmt(f),
            #[cfg(feature = "gs")]
            StorePlace::Google(place) => place.fmt(f),
            #[cfg(feature = "postgres")]
            StorePlace::Postgres(place) => place.fmt(f),
        }
    }
}

/// The part before the first colon, if it can be a scheme.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|next| next.is_ascii_alphanumeric() || "+-.".contains(next));
    is_scheme.then_some((scheme, rest))
}

fn no_scheme(text: &str) -> UrlError {
    if text.is_empty() {
        return UrlError::new(format!("the URL of a store is empty: write it like {EXAMPLE}"));
    }
    #[cfg(feature = "file")]
    if let Ok(url) = StoreUrl::of_directory(text) {
        return UrlError::new(format!("{text:?} is a path, but a store needs a URL: write {url}"));
    }
    UrlError::new(format!("{text:?} is not the URL of a store: write it like {EXAMPLE}"))
}

/// Examples of URLs that this build can open, as a part of a sentence.
fn known() -> String {
    match KNOWN {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => KNOWN.concat(),
    }
}

/// Examples of URLs that this build can open.
const KNOWN: &[&str] = &[
    #[cfg(feature = "file")]
    "file:///path",
    #[cfg(feature = "memory")]
    "memory:",
    #[cfg(feature = "redis")]
    "redis://host:6379",
    #[cfg(feature = "s3")]
    "s3://bucket/prefix",
    #[cfg(feature = "az")]
    "az://container/prefix",
    #[cfg(feature = "gs")]
    "gs://bucket/prefix",
    #[cfg(feature = "postgres")]
    "postgres://role@host/database",
];

const EXAMPLE: &str = KNOWN[0];

/// The features of other builds, each with the schemes of its URLs.
const FEATURES: &[(&str, &[&str])] = &[
    ("file", &["file"]),
    ("memory", &["memory"]),
    ("redis", &["redis", "rediss", "redis+unix", "redis+sentinel", "rediss+sentinel"]),
    ("s3", &["s3"]),
    ("az", &["az"]),
    ("gs", &["gs"]),
    ("postgres", &["postgres", "postgresql"]),
];

/// The stores that Tenure names elsewhere, and no build has.
const PLANNED: &[&str] = &["etcd", "nats", "k8s"];

/// True for the URL of a store that another build has, or that is planned.
fn is_known_elsewhere(scheme: &str) -> bool {
    PLANNED.contains(&scheme) || FEATURES.iter().any(|(_, schemes)| schemes.contains(&scheme))
}
