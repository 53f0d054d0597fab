use tenure::clock::Instant;

/// What the supervisor tells the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The lease is held for so long: TERM at the first instant, KILL at the second, unless told otherwise before. The
    /// first of these carries the witness.
    Until { term_at: Instant, kill_at: Instant },
    /// The supervisor has sent TERM. KILL at this instant at the latest.
    Stopping { kill_at: Instant },
    /// KILL now.
    Kill,
}

impl Order {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let (tag, first, second) = match self {
            Self::Until { term_at, kill_at } => (b'U', term_at.as_nanos(), kill_at.as_nanos()),
            Self::Stopping { kill_at } => (b'S', kill_at.as_nanos(), 0),
            Self::Kill => (b'K', 0, 0),
        };
        [&[tag][..], &first.to_ne_bytes(), &second.to_ne_bytes()].concat()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let (first, second) = rest.split_at_checked(8)?;
        let instant = |bytes: &[u8]| Some(Instant::from_nanos(u64::from_ne_bytes(bytes.try_into().ok()?)));
        let (first, second) = (instant(first)?, instant(second)?);
        match tag {
            b'U' => Some(Self::Until { term_at: first, kill_at: second }),
            b'S' => Some(Self::Stopping { kill_at: first }),
            b'K' => Some(Self::Kill),
            _ => None,
        }
    }
}
