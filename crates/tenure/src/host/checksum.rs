/// FNV-1a with 64 bits, over the parts and their lengths. It detects corruption, edits and truncation, not forgery: a
/// forger could write the complete file.
pub(crate) fn checksum(parts: &[&[u8]]) -> u64 {
    let mut sum = Checksum::default();
    for part in parts {
        sum.add(part);
        sum.add(&(part.len() as u64).to_le_bytes());
    }
    sum.0
}

/// The same for one part of unknown length, which arrives in pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartChecksum {
    sum: Checksum,
    length: u64,
}

impl PartChecksum {
    pub(crate) fn new() -> Self {
        Self { sum: Checksum::default(), length: 0 }
    }

    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.sum.add(piece);
        self.length += piece.len() as u64;
    }

    /// Number of bytes so far.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Equal to [`checksum`] of the complete part.
    pub(crate) fn finish(mut self) -> u64 {
        self.sum.add(&self.length.to_le_bytes());
        self.sum.0
    }
}

#[derive(Clone, Copy, Debug)]
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 ^= u64::from(*byte);
            self.0 = self.0.wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_checksum_of_the_complete_part() {
        let mut pieces = PartChecksum::new();
        pieces.add(b"one ");
        pieces.add(b"");
        pieces.add(b"part");
        assert_eq!((pieces.finish(), pieces.length()), (checksum(&[b"one part"]), 8));
        assert_ne!(checksum(&[b"one ", b"part"]), checksum(&[b"one part"]));
    }
}
