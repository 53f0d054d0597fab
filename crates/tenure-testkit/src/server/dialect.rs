//! Protocols of clients.

/// The protocol that a server's clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// S3.
    S3,
    /// Azure Blob Storage.
    Azure,
    /// The XML API of Google Cloud Storage.
    Google,
}
