//! The protocols of databases, split into commands and replies.

use super::request::ProxiedRequest;

/// The state of one connection of a database's protocol. Each command gets one reply, in order; a client may send
/// commands before it has the replies of earlier ones.
pub(crate) trait Dialogue: Send {
    /// Takes the next part from the client's bytes; `None` if they contain none that is complete.
    fn take_request(&mut self, bytes: &mut Vec<u8>) -> Option<ClientPart>;

    /// Takes the next part from the server's bytes; `None` if they contain none that is complete. `awaited` is true if
    /// a command has no reply yet.
    fn take_reply(&mut self, bytes: &mut Vec<u8>, awaited: bool) -> Option<ServerPart>;
}

/// A part of a client's bytes.
#[derive(Debug)]
pub(crate) enum ClientPart {
    /// A command that the server replies to.
    Command(DatabaseCommand),
    /// Bytes that are forwarded unseen: a login, or what has no reply.
    Unseen(Vec<u8>),
}

/// A part of a server's bytes.
#[derive(Debug)]
pub(crate) enum ServerPart {
    /// The reply to the oldest command without one.
    Reply {
        /// The reply.
        bytes: Vec<u8>,
        /// True if the server reports an error.
        failed: bool,
    },
    /// Bytes that are forwarded unseen: the answer to a login, or a notification.
    Unseen(Vec<u8>),
}

/// A command of a database.
#[derive(Debug)]
pub(crate) struct DatabaseCommand {
    pub(crate) bytes: Vec<u8>,
    pub(crate) name: String,
    pub(crate) text: String,
}

impl ProxiedRequest for DatabaseCommand {
    fn method(&self) -> &str {
        &self.name
    }

    fn target(&self) -> &str {
        &self.text
    }

    fn is_write(&self) -> bool {
        self.text.contains(RECORD)
    }
}

/// All bytes, or `None` if there are none.
pub(crate) fn everything(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    (!bytes.is_empty()).then(|| std::mem::take(bytes))
}

/// The beginning of every record.
const RECORD: &str = "{\"tenure\":";
