//! The protocol of PostgreSQL.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::dialogue::{ClientPart, DatabaseCommand, Dialogue, ServerPart, everything};

/// A connection with the protocol of PostgreSQL. The login is forwarded unseen, and so is an encrypted connection.
///
/// A command is a simple query, or all messages up to a Sync. Its name is `QUERY`, `EXECUTE`, or `PREPARE` if it executes
/// nothing; its text is the SQL, and below it the parameters, one per line.
#[derive(Debug, Default)]
pub(crate) struct PostgresDialogue {
    stage: Stage,
    /// The messages of a command whose end is not there yet.
    command: Vec<u8>,
    name: &'static str,
    text: String,
    /// The SQL of its last Parse.
    parsed: String,
    /// The SQL of prepared statements, by name.
    prepared: BTreeMap<Vec<u8>, String>,
    /// The messages of a reply whose end is not there yet.
    reply: Vec<u8>,
    failed: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Login,
    /// The client has asked for encryption; the server answers with one byte.
    EncryptionAsked,
    Ready,
    Unseen,
}

impl Dialogue for PostgresDialogue {
    fn take_request(&mut self, bytes: &mut Vec<u8>) -> Option<ClientPart> {
        if self.stage != Stage::Ready {
            if self.stage == Stage::Login && bytes.get(4..8) == Some(&SSL_REQUEST) {
                self.stage = Stage::EncryptionAsked;
            }
            return everything(bytes).map(ClientPart::Unseen);
        }
        loop {
            let message = take_message(bytes)?;
            let body = &message[5..];
            match message[0] {
                b'P' => {
                    let mut words = body.splitn(3, |&byte| byte == 0);
                    let (name, sql) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                    let sql = String::from_utf8_lossy(sql).into_owned();
                    self.parsed.clone_from(&sql);
                    self.prepared.insert(name.to_vec(), sql);
                }
                b'B' => self.bound(body),
                b'E' => self.name = "EXECUTE",
                b'Q' => {
                    self.name = "QUERY";
                    self.text = String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(body)).into_owned();
                }
                _ => {}
            }
            let ends = matches!(message[0], b'Q' | b'S');
            // The client waits for answers before it sends the end of the command, or for none at all.
            let unseen = matches!(message[0], b'H' | b'X' | b'd' | b'c' | b'f');
            self.command.extend(message);
            if ends {
                let (parsed, text) = (std::mem::take(&mut self.parsed), std::mem::take(&mut self.text));
                let (name, text) = match std::mem::take(&mut self.name) {
                    "" => ("PREPARE", parsed),
                    name => (name, text),
                };
                let bytes = std::mem::take(&mut self.command);
                return Some(ClientPart::Command(DatabaseCommand { bytes, name: name.to_owned(), text }));
            }
            if unseen {
                return Some(ClientPart::Unseen(std::mem::take(&mut self.command)));
            }
        }
    }

    fn take_reply(&mut self, bytes: &mut Vec<u8>, awaited: bool) -> Option<ServerPart> {
        match self.stage {
            Stage::Unseen => return everything(bytes).map(ServerPart::Unseen),
            Stage::EncryptionAsked => {
                let answer = everything(bytes)?;
                self.stage = if answer.starts_with(b"S") { Stage::Unseen } else { Stage::Login };
                return Some(ServerPart::Unseen(answer));
            }
            Stage::Login | Stage::Ready => {}
        }
        loop {
            let message = take_message(bytes)?;
            let kind = message[0];
            self.failed |= kind == b'E';
            self.reply.extend(message);
            if kind == b'Z' {
                let (bytes, failed) = (std::mem::take(&mut self.reply), std::mem::take(&mut self.failed));
                if self.stage == Stage::Ready && awaited {
                    return Some(ServerPart::Reply { bytes, failed });
                }
                self.stage = Stage::Ready;
                return Some(ServerPart::Unseen(bytes));
            }
            // A copy of rows waits for the client in the middle of a reply.
            if self.stage == Stage::Login || !awaited || matches!(kind, b'G' | b'W') {
                return Some(ServerPart::Unseen(std::mem::take(&mut self.reply)));
            }
        }
    }
}

impl PostgresDialogue {
    /// Adds the SQL and the parameters of a Bind to the text.
    fn bound(&mut self, body: &[u8]) {
        let mut names = body.splitn(3, |&byte| byte == 0);
        let (_, statement) = (names.next(), names.next().unwrap_or_default());
        if let Some(sql) = self.prepared.get(statement) {
            self.text += sql;
        }
        let mut parameters = Reader(names.next().unwrap_or_default());
        for _ in 0..parameters.short().unwrap_or_default() {
            parameters.short();
        }
        for _ in 0..parameters.short().unwrap_or_default() {
            let length = parameters.long().and_then(|length| usize::try_from(length).ok());
            let value = length.and_then(|length| parameters.take(length));
            let value = value.map_or("NULL".into(), String::from_utf8_lossy);
            write!(self.text, "\n{value}").expect("a string has room");
        }
    }
}

/// Takes the first message: its kind, its length and its body.
fn take_message(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?);
    let length = 1 + usize::try_from(length).ok()?;
    (bytes.len() >= length).then(|| bytes.drain(..length).collect())
}

/// Reads the numbers of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<i16> {
        self.take(2)?.try_into().ok().map(i16::from_be_bytes)
    }

    fn long(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }
}

/// The code of a request for encryption, in place of a protocol version.
const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();
