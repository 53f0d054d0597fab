use object_store::list::PaginatedListStore;
use object_store::{ObjectStore, UpdateVersion};
use tenure_store::Version;

use super::{AnswerMeaning, CredentialsFlaw, RequestKind};
use crate::wire::ServerAnswer;

/// The differences between the providers of object stores: the meaning of their answers, the words for them, and the
/// form of a version.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// The client that signs and sends the requests.
    type Client: ObjectStore + PaginatedListStore;

    /// Name of the protocol, for messages.
    const PROTOCOL: &'static str;

    /// A version that no object ever has.
    const IMPOSSIBLE_VERSION: &'static str;

    /// Meaning of an answer. Its status and its code decide, never the report of the client library.
    fn classify(&self, asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning;

    /// The flaw of the credentials, if the answer refuses the request because of it and not because of a missing right.
    fn credentials_flaw(&self, answer: &ServerAnswer) -> Option<CredentialsFlaw>;

    /// The cause of an error and the next step, as the beginning of a sentence; `None` if nothing is known.
    fn advice(&self, asked: RequestKind, answer: &ServerAnswer) -> Option<String>;

    /// The version in an answer, from its ETag and its version header.
    fn version(&self, etag: Option<String>, generation: Option<String>) -> Option<Version>;

    /// The condition of a replace.
    fn condition(&self, version: &Version) -> UpdateVersion;

    /// An ETag in the form in which the server accepts it in a conditional read.
    fn etag(&self, etag: &str) -> String {
        etag.to_owned()
    }

    /// Message for a container whose retention rule locks every written version.
    fn retains_every_write(&self) -> String;

    /// True if a delete failed because the credentials lack the right.
    fn is_denied(&self, error: &object_store::Error) -> bool {
        matches!(
            error,
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }
        )
    }

    /// Message for credentials without the right to delete Tenure's own keys.
    fn may_not_delete(&self) -> String;

    /// Message for repeated refusals to replace the current version.
    fn refuses_current_version(&self) -> String;
}
