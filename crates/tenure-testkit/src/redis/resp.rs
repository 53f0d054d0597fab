//! The protocol of Redis, RESP, in versions 2 and 3.

/// One value of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RespValue {
    /// A text, a number or a truth value.
    Text(Vec<u8>),
    /// An error of the server.
    Error(Vec<u8>),
    /// Nothing.
    Null,
    /// An array, set or map; a map as keys and values in turn.
    Array(Vec<Self>),
    /// A message that answers no command.
    Push(Vec<Self>),
}

impl RespValue {
    /// The first value in these bytes and its length; `None` if the bytes do not contain all of it.
    pub(crate) fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let (line, after) = (bytes[..end].get(1..).unwrap_or_default(), end + 2);
        let count = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
        match bytes[0] {
            b'$' | b'=' | b'!' => {
                let Ok(length) = usize::try_from(count()?) else { return Some((Self::Null, after)) };
                let text = bytes.get(after..after + length + 2)?[..length].to_vec();
                let value = if bytes[0] == b'!' { Self::Error(text) } else { Self::Text(text) };
                Some((value, after + length + 2))
            }
            b'*' | b'~' | b'%' | b'>' | b'|' => {
                let Ok(length) = usize::try_from(count()?) else { return Some((Self::Null, after)) };
                let pairs = matches!(bytes[0], b'%' | b'|');
                let (mut values, mut at) = (Vec::new(), after);
                for _ in 0..if pairs { 2 * length } else { length } {
                    let (value, used) = Self::parse(&bytes[at..])?;
                    values.push(value);
                    at += used;
                }
                match bytes[0] {
                    b'>' => Some((Self::Push(values), at)),
                    // Attributes belong to the value after them.
                    b'|' => Self::parse(&bytes[at..]).map(|(value, used)| (value, at + used)),
                    _ => Some((Self::Array(values), at)),
                }
            }
            b'-' => Some((Self::Error(line.to_vec()), after)),
            b'_' => Some((Self::Null, after)),
            b'+' | b':' | b',' | b'#' | b'(' => Some((Self::Text(line.to_vec()), after)),
            // An inline command, as a person types it.
            _ => {
                let words = bytes[..end].split(|&byte| byte == b' ').filter(|word| !word.is_empty());
                Some((Self::Array(words.map(|word| Self::Text(word.to_vec())).collect()), after))
            }
        }
    }

    /// A command as bytes.
    pub(crate) fn command(words: &[&str]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
        bytes
    }

    /// The value as lines of text; an error of the server as an error.
    pub(crate) fn lines(self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Self::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
            Self::Null => Ok(String::new()),
            Self::Array(values) | Self::Push(values) => {
                let lines: Result<Vec<_>, _> = values.into_iter().map(Self::lines).collect();
                Ok(lines?.join("\n"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> RespValue {
        RespValue::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn values_of_both_versions_are_parsed_with_their_lengths() {
        let cases = [
            ("+OK\r\n", text("OK")),
            (":-7\r\n", text("-7")),
            ("$5\r\na\r\nbc\r\n", text("a\r\nbc")),
            ("$-1\r\n", RespValue::Null),
            ("_\r\n", RespValue::Null),
            ("-ERR no\r\n", RespValue::Error(b"ERR no".to_vec())),
            (
                "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
                RespValue::Array(vec![text("a"), RespValue::Array(vec![text("1")])]),
            ),
            ("%1\r\n+a\r\n#t\r\n", RespValue::Array(vec![text("a"), text("t")])),
            ("|1\r\n+a\r\n+b\r\n:1\r\n", text("1")),
            (">1\r\n+message\r\n", RespValue::Push(vec![text("message")])),
            ("\r\n", RespValue::Array(Vec::new())),
            ("PING now\r\n", RespValue::Array(vec![text("PING"), text("now")])),
        ];
        for (bytes, value) in cases {
            assert_eq!(RespValue::parse(bytes.as_bytes()), Some((value, bytes.len())), "{bytes:?}");
            for part in 1..bytes.len() {
                assert_eq!(RespValue::parse(&bytes.as_bytes()[..part]), None, "{part} bytes of {bytes:?}");
            }
        }
    }

    #[test]
    fn a_command_is_parsed_as_it_was_written() {
        let bytes = RespValue::command(&["SET", "key", "a b"]);
        let value = RespValue::Array(vec![text("SET"), text("key"), text("a b")]);
        assert_eq!(RespValue::parse(&bytes), Some((value, bytes.len())));
    }
}
