//! Stamps of rows, and the versions made of them.
//!
//! A version is `SERVER:STAMP`: the start of the server process that showed the row, and the stamp in the row. A failover to
//! a standby, or a crash without `fsync`, may undo the latest writes and bring an earlier row back. Nothing that a
//! participant saw on the earlier server process is then a reason to write: a grant on such a version could have a smaller
//! token than a grant that was undone. With the server in the version, the write is a conflict, and the participant reads
//! again (RFC 0010).

use tenure_store::{Reason, StoreError, Version};

/// A version of a row that does not exist.
pub(crate) const IMPOSSIBLE: &str = "0:0-00000000000000000000000000000000";

/// The stamp of the write that replaces `old`, or of the first one.
///
/// The number counts the writes of the row, for operators. The random part makes the stamp unique: after the restore of a
/// backup the numbers repeat, and the random parts do not. It comes from the kernel, which also keeps two clones of a
/// virtual machine apart.
pub(crate) fn next(old: Option<&Version>) -> Result<String, StoreError> {
    let number = old
        .and_then(|old| old.as_str().split_once(':')?.1.split_once('-')?.0.parse::<u64>().ok())
        .unwrap_or(0)
        .saturating_add(1);
    Ok(format!("{number}-{:032x}", u128::from_ne_bytes(random()?)))
}

/// The version of a row with this stamp on this server process.
pub(crate) fn version(server: &str, stamp: &str) -> Version {
    Version::new(format!("{server}:{stamp}"))
}

fn random() -> Result<[u8; 16], StoreError> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                let sentence = format!("the kernel gives no random numbers: {error}");
                return Err(StoreError::refused(Reason::Unsupported, sentence));
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_counts_the_writes_and_is_never_repeated() {
        let first = next(None).unwrap();
        let seen = version("1700000000000000", &first);
        let (second, twin) = (next(Some(&seen)).unwrap(), next(Some(&seen)).unwrap());
        assert!(first.starts_with("1-"), "{first}");
        assert!(second.starts_with("2-") && twin.starts_with("2-"));
        assert_ne!(second, twin, "a restored row continues with other stamps");
        assert!(next(Some(&Version::new(IMPOSSIBLE))).unwrap().starts_with("1-"));
    }

    #[test]
    fn the_impossible_version_has_the_form_of_a_version() {
        let (server, stamp) = IMPOSSIBLE.split_once(':').unwrap();
        assert_eq!((server, stamp.len()), ("0", next(None).unwrap().len()));
    }
}
