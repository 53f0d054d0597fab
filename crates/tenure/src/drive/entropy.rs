use crate::record::Nonce;

/// The kernel's randomness. Nothing seeded in this process would do: a cloned virtual machine has the same seed.
#[derive(Debug, Default)]
pub(super) struct Entropy;

impl Entropy {
    pub(super) fn nonce(&self) -> Nonce {
        Nonce::from_bits(u128::from_ne_bytes(draw()))
    }

    pub(super) fn jitter(&self) -> u32 {
        u32::from_ne_bytes(draw())
    }
}

#[expect(clippy::disallowed_methods, reason = "the keeper owns randomness")]
fn draw<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Fails only where the kernel has no randomness at all; then nothing may be granted, and the keeper's end says so.
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    bytes
}
