use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::field::Field;
use super::foreign::{Foreign, excerpt};

/// A JSON object whose members are taken out one by one, so that the remaining ones are known.
///
/// Members keep their order and their text. A repeated name is found, which a map would hide.
pub(super) struct Object<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
    taken: Vec<&'static str>,
}

impl<'a> Object<'a> {
    /// Splits the text of an object. Verifies that the members are JSON, at any depth, but does not interpret them.
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut parser = serde_json::Deserializer::from_str(text);
        let members = parser.deserialize_map(Members)?;
        parser.end()?;
        Ok(Self { members, taken: Vec::with_capacity(super::KNOWN.len()) })
    }

    /// Takes a member out, if it exists.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Field<'a>> {
        self.taken.push(name);
        let index = self.members.iter().position(|(member, _)| member == name)?;
        let (_, text) = self.members.remove(index);
        Some(Field { name, text })
    }

    /// Takes out a required member.
    pub(super) fn need(&mut self, name: &'static str) -> Result<Field<'a>, Foreign> {
        self.take(name).ok_or_else(|| Foreign::damaged(name, "is missing"))
    }

    /// Takes out all remaining members.
    pub(super) fn take_rest(&mut self) -> Vec<(Cow<'a, str>, &'a str)> {
        std::mem::take(&mut self.members)
    }

    /// Fails if a member remains: it is repeated or unknown.
    pub(super) fn nothing_left(&self) -> Result<(), Foreign> {
        match self.members.first() {
            Some((name, _)) if self.taken.iter().any(|taken| taken == name) => {
                Err(Foreign::damaged(name, "is there twice"))
            }
            Some((name, _)) => Err(Foreign::UnknownPart { field: excerpt(name) }),
            None => Ok(()),
        }
    }
}

/// Collects the members of an object.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        // A record has 11 to 15 members.
        let mut members = Vec::with_capacity(16);
        while let Some(Name(name)) = map.next_key()? {
            members.push((name, map.next_value::<&RawValue>()?.get()));
        }
        Ok(members)
    }
}

/// The name of a member, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
