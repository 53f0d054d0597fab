//! The list of nonces in a witness: a fixed ring of slots that are written in place.
//!
//! In place, because a file that is replaced by rename has another inode. Each slot has a checksum over the name of the
//! witness, the device of its directory, and the nonce: a torn slot, or one that was copied to another name, is
//! ignored. The device is included because a file below an overlay has the same inode and content as the one in the
//! overlay, but other locks.

use tenure_core::record::Nonce;

use crate::host::checksum::checksum;

/// A new, empty ring.
pub(super) const EMPTY: [u8; BYTES] = [0; BYTES];

/// Length of the file.
pub(super) const BYTES: usize = SLOTS * SLOT;

/// The slot that lists a nonce.
pub(super) fn slot(name: &str, device: u64, nonce: Nonce) -> [u8; SLOT] {
    let bits = nonce.to_bits().to_le_bytes();
    let mut slot = [0; SLOT];
    slot[..16].copy_from_slice(&bits);
    slot[16..].copy_from_slice(&checksum(&[name.as_bytes(), &device.to_le_bytes(), &bits]).to_le_bytes());
    slot
}

/// Offset of the slot for the `turn`th nonce.
pub(super) fn offset(turn: usize) -> u64 {
    (turn % SLOTS * SLOT) as u64
}

/// True if the ring lists the nonce.
pub(super) fn lists(ring: &[u8], name: &str, device: u64, nonce: Nonce) -> bool {
    ring.len() == BYTES && ring.chunks_exact(SLOT).any(|there| *there == slot(name, device, nonce))
}

/// True if the ring lists no nonce but that of the trial. Then no record has ever named the witness.
pub(super) fn is_unused(ring: &[u8], name: &str, device: u64, trial: Nonce) -> bool {
    ring.len() == BYTES
        && ring[..SLOT] == slot(name, device, trial)
        && ring[SLOT..].iter().all(|byte| *byte == 0)
}

/// A nonce and its checksum.
pub(super) const SLOT: usize = 16 + 8;

/// More than a lease can have outstanding, so that no nonce is overwritten whose write may still land.
const SLOTS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_slot_and_a_copied_one_are_not_trusted() {
        let nonce = Nonce::from_bits(0x1234_5678 << 64 | 7);
        let whole = slot("a", 1, nonce);
        let mut ring = EMPTY;
        assert!(!lists(&ring, "a", 1, nonce) && !lists(&ring, "a", 1, Nonce::ZERO));
        for written in 0..SLOT {
            ring[SLOT..SLOT + written].copy_from_slice(&whole[..written]);
            assert!(!lists(&ring, "a", 1, nonce), "{written} bytes of a slot");
        }
        ring[SLOT..2 * SLOT].copy_from_slice(&whole);
        assert!(lists(&ring, "a", 1, nonce) && !lists(&ring, "b", 1, nonce) && !lists(&ring, "a", 2, nonce));
        assert!(!lists(&ring[..BYTES - 1], "a", 1, nonce), "a ring that was cut off");
    }

    #[test]
    fn a_witness_is_unused_until_a_record_may_name_it() {
        let (trial, used) = (Nonce::from_bits(7), Nonce::from_bits(8));
        let mut ring = EMPTY;
        assert!(!is_unused(&ring, "a", 1, trial), "it was not even tried");
        ring[..SLOT].copy_from_slice(&slot("a", 1, trial));
        assert!(is_unused(&ring, "a", 1, trial));
        let mut second = ring;
        second[SLOT..2 * SLOT].copy_from_slice(&slot("a", 1, used));
        assert!(!is_unused(&second, "a", 1, trial));
        ring[..SLOT].copy_from_slice(&slot("a", 1, used));
        assert!(!is_unused(&ring, "a", 1, trial));
    }

    #[test]
    fn the_ring_keeps_the_latest_and_stays_within_its_file() {
        let mut ring = EMPTY;
        let nonce = |turn: usize| Nonce::from_bits(turn as u128 + 1);
        for turn in 0..3 * SLOTS {
            let at = offset(turn) as usize;
            ring[at..at + SLOT].copy_from_slice(&slot("a", 1, nonce(turn)));
        }
        assert!((2 * SLOTS..3 * SLOTS).all(|turn| lists(&ring, "a", 1, nonce(turn))));
        assert!((0..2 * SLOTS).all(|turn| !lists(&ring, "a", 1, nonce(turn))));
    }
}
