//! Versions of rows.

use tenure_store::Version;

/// A version of a row that does not exist.
pub(crate) const IMPOSSIBLE: &str = "0-00000000000000000000000000000000";

/// The version of the write that replaces `old`, or of the first one.
///
/// The number counts the writes of the row, for operators. The random part makes the version unique: after the restore
/// of a backup the numbers repeat, and the random parts do not. It comes from the kernel, which also keeps two clones of
/// a virtual machine apart.
pub(crate) fn next(old: Option<&Version>) -> Version {
    let number = old
        .and_then(|old| old.as_str().split_once('-')?.0.parse::<u64>().ok())
        .unwrap_or(0)
        .saturating_add(1);
    Version::new(format!("{number}-{:032x}", u128::from_ne_bytes(random())))
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        // Short only if a signal interrupts it.
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_counts_the_writes_and_is_never_repeated() {
        let first = next(None);
        let (second, twin) = (next(Some(&first)), next(Some(&first)));
        assert!(first.as_str().starts_with("1-"), "{first}");
        assert!(second.as_str().starts_with("2-") && twin.as_str().starts_with("2-"));
        assert_ne!(second, twin, "a restored row continues with other versions");
        assert!(next(Some(&Version::new(IMPOSSIBLE))).as_str().starts_with("1-"));
    }

    #[test]
    fn the_impossible_version_has_the_form_of_a_version() {
        let version = next(None);
        assert_eq!(version.as_str().len(), IMPOSSIBLE.len());
    }
}
