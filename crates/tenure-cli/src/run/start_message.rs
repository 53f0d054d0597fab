use tenure::clock::Instant;

/// Message that opens the gate of the stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StartMessage {
    /// The instant from which it is too late to start.
    pub(super) before: Instant,
    /// Environment of the child.
    pub(super) environment: Vec<(String, String)>,
}

impl StartMessage {
    /// Names and values contain no NUL byte: no environment can.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.before.as_nanos().to_ne_bytes().to_vec();
        for (name, value) in &self.environment {
            for part in [name, value] {
                bytes.extend_from_slice(part.as_bytes());
                bytes.push(0);
            }
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (before, rest) = bytes.split_at_checked(8)?;
        let before = Instant::from_nanos(u64::from_ne_bytes(before.try_into().ok()?));
        let text = std::str::from_utf8(rest).ok()?;
        if !text.is_empty() && !text.ends_with('\0') {
            return None;
        }
        let mut parts = text.split_terminator('\0').map(str::to_owned);
        let mut environment = Vec::new();
        while let Some(name) = parts.next() {
            environment.push((name, parts.next()?));
        }
        Some(Self { before, environment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_back_unchanged() {
        let environment =
            vec![("TENURE_NAME".to_owned(), "a=b/ü".to_owned()), ("EMPTY".to_owned(), String::new())];
        let message = StartMessage { before: Instant::from_nanos(7), environment };
        assert_eq!(StartMessage::from_bytes(&message.to_bytes()), Some(message));
        assert_eq!(StartMessage::from_bytes(b"short"), None);
    }
}
