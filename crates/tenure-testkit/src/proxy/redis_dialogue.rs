//! The protocol of Redis.

use super::dialogue::{ClientPart, DatabaseCommand, Dialogue, ServerPart, everything};
use crate::redis::RespValue;

/// A connection with the protocol of Redis. It is forwarded unseen if it is encrypted, and from a subscription on,
/// unless the client has chosen version 3 of the protocol, which marks messages of subscriptions.
#[derive(Debug, Default)]
pub(crate) struct RedisDialogue {
    marks_messages: bool,
    unseen: bool,
}

impl Dialogue for RedisDialogue {
    fn take_request(&mut self, bytes: &mut Vec<u8>) -> Option<ClientPart> {
        self.unseen |= bytes.first() == Some(&TLS_HANDSHAKE);
        if self.unseen {
            return everything(bytes).map(ClientPart::Unseen);
        }
        let (value, length) = RespValue::parse(bytes)?;
        let bytes: Vec<_> = bytes.drain(..length).collect();
        let RespValue::Array(words) = value else { return Some(ClientPart::Unseen(bytes)) };
        let mut words = words.into_iter().map(|word| word.lines().unwrap_or_default());
        let Some(name) = words.next().map(|name| name.to_ascii_uppercase()) else {
            return Some(ClientPart::Unseen(bytes));
        };
        let text = words.collect::<Vec<_>>().join(" ");
        if name == "HELLO" {
            self.marks_messages = text.starts_with('3');
        }
        if name.ends_with("SUBSCRIBE") || name == "MONITOR" {
            self.unseen = !self.marks_messages;
            return Some(ClientPart::Unseen(bytes));
        }
        Some(ClientPart::Command(DatabaseCommand { bytes, name, text }))
    }

    fn take_reply(&mut self, bytes: &mut Vec<u8>, awaited: bool) -> Option<ServerPart> {
        if self.unseen && !awaited {
            return everything(bytes).map(ServerPart::Unseen);
        }
        let (value, length) = RespValue::parse(bytes)?;
        let bytes: Vec<_> = bytes.drain(..length).collect();
        if !awaited || matches!(value, RespValue::Push(_)) {
            return Some(ServerPart::Unseen(bytes));
        }
        Some(ServerPart::Reply { bytes, failed: matches!(value, RespValue::Error(_)) })
    }
}

/// The first byte of an encrypted connection.
const TLS_HANDSHAKE: u8 = 22;
