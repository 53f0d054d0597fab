use std::fmt;

use crate::{Error, ErrorKind};

/// Number of slots of a group: 1 to 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupSize(u16);

impl GroupSize {
    /// Maximum number of slots of a group: a newcomer in a full group reads each of them once.
    pub const MAX: Self = Self(1_024);

    /// A group of this many slots.
    pub fn new(slots: u32) -> Result<Self, Error> {
        match u16::try_from(slots) {
            Ok(slots) if (1..=Self::MAX.0).contains(&slots) => Ok(Self(slots)),
            _ => {
                let sentence = format!(
                    "a group has 1 to {} slots, not {slots}: choose a number in this range",
                    Self::MAX
                );
                Err(Error::new(ErrorKind::Invalid, sentence))
            }
        }
    }

    /// The size that a group has stored; `None` if the text is no size, or another spelling of one.
    pub fn from_stored(text: &str) -> Option<Self> {
        let size = Self::new(text.parse().ok()?).ok()?;
        (size.to_string() == text).then_some(size)
    }

    /// The number of slots.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for GroupSize {
    /// The text that a group stores.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_one_to_1024_slots_and_the_error_names_the_number() {
        for slots in [1, 5, 1_024] {
            assert_eq!(u32::from(GroupSize::new(slots).unwrap().get()), slots);
        }
        for slots in [0, 1_025, 65_537, u32::MAX] {
            let error = GroupSize::new(slots).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert_eq!(
                error.to_string(),
                format!("a group has 1 to 1024 slots, not {slots}: choose a number in this range")
            );
        }
    }

    #[test]
    fn a_stored_size_comes_back_and_no_other_text_is_a_size() {
        let size = GroupSize::new(64).unwrap();
        assert_eq!(GroupSize::from_stored(&size.to_string()), Some(size));
        for text in ["", "0", "1025", "-1", "+5", "05", " 5", "5.0", "five"] {
            assert_eq!(GroupSize::from_stored(text), None, "{text:?}");
        }
    }
}
