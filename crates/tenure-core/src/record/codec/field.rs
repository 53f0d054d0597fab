use std::borrow::Cow;

use serde_json::value::RawValue;

use super::foreign::Foreign;
use super::object::Object;
use super::{NUMBER_MAX, time};
use crate::WallTime;
use crate::record::Nonce;

/// The JSON text of one value, and the name of its field. The text is valid JSON.
pub(super) struct Field<'a> {
    pub(super) name: &'static str,
    pub(super) text: &'a str,
}

impl<'a> Field<'a> {
    pub(super) fn damaged(&self, why: impl Into<String>) -> Foreign {
        Foreign::damaged(self.name, why)
    }

    /// True for a number of any kind.
    pub(super) fn is_number(&self) -> bool {
        self.text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
    }

    /// Reads a text.
    pub(super) fn text(&self) -> Result<Cow<'a, str>, Foreign> {
        let Some(inner) = self.text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
            return Err(self.damaged("is not a text"));
        };
        if !inner.contains('\\') {
            return Ok(Cow::Borrowed(inner));
        }
        // Half of a surrogate pair is valid JSON, but not valid text.
        let text = serde_json::from_str(self.text).map_err(|_| self.damaged("is not Unicode"))?;
        Ok(Cow::Owned(text))
    }

    /// Reads a whole number, in digits only: readers disagree about `1e3` and `1.0`.
    pub(super) fn number(&self) -> Result<u64, Foreign> {
        match self.text.parse::<u64>() {
            Ok(number) if number <= NUMBER_MAX => Ok(number),
            _ => Err(self.damaged(format!("is not a whole number from 0 to {NUMBER_MAX}"))),
        }
    }

    /// Reads a whole number of 64 bits. It is a text, because readers in many languages would round the number.
    pub(super) fn wide_number(&self) -> Result<u64, Foreign> {
        let text = self.text()?;
        match text.parse::<u64>() {
            // The parser accepts leading zeros and a plus sign, which would not survive a rewrite.
            Ok(number) if number.to_string() == *text => Ok(number),
            _ => Err(self.damaged("is not a text of a whole number of 64 bits")),
        }
    }

    /// Reads a nonce. Zero means "none" in memory, and "none" is never written.
    pub(super) fn nonce(&self) -> Result<Nonce, Foreign> {
        let nonce = Nonce::from_bits(u128::from_be_bytes(self.hex()?));
        if nonce == Nonce::ZERO { Err(self.damaged("is zero")) } else { Ok(nonce) }
    }

    /// Reads a fixed number of bytes in lowercase hexadecimal.
    pub(super) fn hex<const N: usize>(&self) -> Result<[u8; N], Foreign> {
        parse_hex(&self.text()?).ok_or_else(|| self.damaged(format!("is not {} lowercase hex digits", 2 * N)))
    }

    /// Reads an informational time.
    pub(super) fn time(&self) -> Result<WallTime, Foreign> {
        time::parse(&self.text()?)
            .ok_or_else(|| self.damaged("is not a time such as 2026-11-15T05:30:00.250Z"))
    }

    /// Reads an object. `read` must take every member: an unknown one would be lost in a rewrite.
    pub(super) fn object<T>(
        &self,
        read: impl FnOnce(&mut Object<'a>) -> Result<T, Foreign>,
    ) -> Result<T, Foreign> {
        if !self.text.starts_with('{') {
            return Err(self.damaged("is not an object"));
        }
        let read_all = || {
            // The text is JSON; only a name with half of a surrogate pair can still fail.
            let mut object =
                Object::parse(self.text).map_err(|_| Foreign::damaged("", "has a broken name"))?;
            let result = read(&mut object)?;
            object.nothing_left()?;
            Ok(result)
        };
        read_all().map_err(|foreign: Foreign| foreign.within(self.name))
    }

    /// Reads a list of at most `max` entries.
    pub(super) fn list<T>(
        &self,
        max: usize,
        read: impl Fn(&Field<'a>) -> Result<T, Foreign>,
    ) -> Result<Vec<T>, Foreign> {
        let Ok(items) = serde_json::from_str::<Vec<&'a RawValue>>(self.text) else {
            return Err(self.damaged("is not a list"));
        };
        if items.len() > max {
            return Err(self.damaged(format!("has {} entries, and at most {max} are allowed", items.len())));
        }
        let read_item = |(index, item): (usize, &&'a RawValue)| {
            let read = read(&Field { name: "", text: item.get() });
            read.map_err(|foreign| foreign.within(&format!("{}[{index}]", self.name)))
        };
        items.iter().enumerate().map(read_item).collect()
    }
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}
