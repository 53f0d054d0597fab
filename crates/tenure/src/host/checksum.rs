/// FNV-1a with 64 bits, over the parts and their lengths. It detects corruption, edits and truncation, not forgery: a
/// forger could write the complete file.
pub(crate) fn checksum(parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash ^= u64::from(*byte);
            hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}
