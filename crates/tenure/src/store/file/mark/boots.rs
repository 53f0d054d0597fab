use std::fmt;

use crate::host::checksum::checksum;

/// Boots whose programs have raised the mark.
///
/// The first program of a boot cannot know whether the mark that it finds is the latest one, or lost its last seconds
/// with the memory of the machine. So it assumes that the mark is later. That must happen once for each boot:
/// otherwise, two containers with boot ids of their own would push the mark ahead of each other forever.
///
/// The list is bounded. While it is full, every raise puts the mark on the disk. So nothing can be lost, and the next
/// boot adds nothing. The list starts again once the clock has overtaken the mark; see [`Mark`](super::Mark).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Boots(Vec<u64>);

impl Boots {
    /// Number of boots in a full list. Ten fit into the length that earlier programs read.
    pub(super) const MAX: usize = 10;

    pub(super) const MAX_BYTES: usize = Self::MAX * (DIGITS + 1) - 1;

    /// Number of a boot id; the number of `None` stands for all boots without an id.
    pub(super) fn id(boot: Option<&str>) -> u64 {
        checksum(&[boot.unwrap_or(UNKNOWN).as_bytes()])
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.0.contains(&id)
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= Self::MAX
    }

    /// Adds this boot to the list, unless the list is full.
    pub(super) fn with(mut self, id: u64) -> Self {
        if !self.contains(id) && !self.is_full() {
            self.0.push(id);
        }
        self
    }

    /// Parses the list of boots. A word that is not a list is the clock domain of a boot, as earlier programs wrote it.
    pub(super) fn parse(word: &str) -> Self {
        let id = |part: &str| {
            let digits = part.len() == DIGITS && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            digits.then(|| u64::from_str_radix(part, 16).ok()).flatten()
        };
        match word.split(',').map(id).collect::<Option<Vec<_>>>() {
            Some(ids) => Self(ids.into_iter().take(Self::MAX).collect()),
            None => Self::default().with(Self::id(word.split(',').next())),
        }
    }
}

impl fmt::Display for Boots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.0.iter().map(|id| format!("{id:016x}")).collect();
        f.write_str(&ids.join(","))
    }
}

const DIGITS: usize = 16;

/// The name of a boot without an id, in earlier programs.
const UNKNOWN: &str = "-";
