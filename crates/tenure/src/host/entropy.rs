use tenure_core::record::Nonce;

use crate::host::simulation::simulated;

/// The kernel's random number generator. A generator seeded in this process would not do: a cloned virtual machine has
/// the same seed.
#[derive(Debug, Default)]
pub(crate) struct Entropy;

impl Entropy {
    pub(crate) fn nonce(&self) -> Nonce {
        Nonce::from_bits(u128::from_ne_bytes(draw()))
    }

    /// A nonce and a jitter for one step of a machine. They are drawn when needed, never in advance.
    pub(crate) fn step(&self) -> (Nonce, u32) {
        let bytes: [u8; 20] = draw();
        let (nonce, jitter) = bytes.split_at(16);
        let nonce = u128::from_ne_bytes(nonce.try_into().expect("sixteen bytes"));
        (Nonce::from_bits(nonce), u32::from_ne_bytes(jitter.try_into().expect("four bytes")))
    }
}

/// Fresh random bytes.
#[expect(clippy::disallowed_methods, reason = "the one owner of randomness")]
pub(crate) fn draw<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if simulated(|host| host.fill(&mut bytes)).is_some() {
        return bytes;
    }
    // Fails only if the kernel has no random numbers at all. Then nothing may be granted, and the keeper ends with this
    // message.
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    bytes
}
