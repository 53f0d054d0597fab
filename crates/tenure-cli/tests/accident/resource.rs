use std::path::Path;

use super::path_text;

/// A kind of resource, and where it is.
#[derive(Debug)]
pub(crate) enum Resource {
    /// A file that is replaced.
    File,
    /// A file to which is appended.
    Log,
    /// A value in a directory with a file store.
    Value,
    /// An object in a bucket: the URL of the bucket, its options, and the environment that the client needs.
    Object(String, String, Vec<(&'static str, &'static str)>),
    /// A table of a PostgreSQL database, whose fence is installed.
    Postgres(String),
    /// Keys of a Redis server.
    Redis(String),
    /// A table of a SQLite database.
    Sqlite,
}

impl Resource {
    /// The resource of one lane, in words for its writers.
    pub(super) fn address(&self, path: &Path, name: &str, lane: u64) -> String {
        let path = path_text(path);
        match self {
            Self::File => format!("file {path}"),
            Self::Log => format!("log {path}"),
            Self::Value => format!("value {path}"),
            Self::Object(bucket, options, _) => format!("object {bucket}/{name}-{lane}.csv{options}"),
            Self::Postgres(url) => format!("postgres {url} {name}-{lane}"),
            Self::Redis(url) => format!("redis {url} {name}-{lane}"),
            Self::Sqlite => format!("sqlite {path}"),
        }
    }

    /// Environment that its client needs.
    pub(super) fn environment(&self) -> &[(&'static str, &'static str)] {
        if let Self::Object(_, _, environment) = self { environment } else { &[] }
    }

    /// True if a writer that is stopped in the middle of a write excludes the others, by a lock of the kernel or of its
    /// transaction.
    pub(super) fn excludes_inside(&self) -> bool {
        !matches!(self, Self::Object(..) | Self::Redis(_))
    }
}
