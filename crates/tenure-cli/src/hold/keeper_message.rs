/// Message of the keeper to the foreground process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeeperMessage {
    /// The lease is granted: print this answer, and report that it is printed.
    Granted { answer: String },
    /// The keeper holds the lease from now on, whatever happens to the foreground process.
    Kept,
}

impl KeeperMessage {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Granted { answer } => [b"G", answer.as_bytes()].concat(),
            Self::Kept => b"K".to_vec(),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'G', answer) => Some(Self::Granted { answer: String::from_utf8(answer.to_vec()).ok()? }),
            (b'K', []) => Some(Self::Kept),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_as_it_was_sent() {
        for message in [KeeperMessage::Granted { answer: "17\n".to_owned() }, KeeperMessage::Kept] {
            assert_eq!(KeeperMessage::from_bytes(&message.to_bytes()), Some(message));
        }
        assert_eq!(KeeperMessage::from_bytes(b""), None);
    }
}
