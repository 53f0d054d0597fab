use super::mark::{Intent, Tail};

/// What the next writer does about the end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TailState {
    /// The log is complete up to this length, and on the disk.
    Complete(u64),
    /// An append of a dead writer is complete up to this length, and may not be on the disk.
    Unsynced(u64),
    /// An append of a dead writer is torn: the log is cut to this length.
    Torn(u64),
    /// Another program has changed the log. The text says how.
    Foreign(String),
}

impl Tail {
    /// Length of the log after its last complete append, as far as the mark alone shows.
    pub(super) fn length(self) -> u64 {
        match self {
            Self::Settled(length) => length,
            Self::Appending(intent) => intent.from,
        }
    }

    /// Judges the log, which has this size now. `is_whole` reads the bytes of an append and compares their checksum.
    pub(super) fn judge<E>(
        self,
        size: u64,
        boot: u64,
        is_whole: impl FnOnce(&Intent) -> Result<bool, E>,
    ) -> Result<TailState, E> {
        let intent = match self {
            Self::Settled(length) if size == length => return Ok(TailState::Complete(length)),
            Self::Settled(length) => return Ok(foreign(size, length, length)),
            Self::Appending(intent) => intent,
        };
        let end = intent.from + intent.length;
        if !(intent.from..=end).contains(&size) {
            return Ok(foreign(size, intent.from, end));
        }
        if size < end {
            return Ok(TailState::Torn(intent.from));
        }
        if is_whole(&intent)? {
            return Ok(TailState::Unsynced(end));
        }
        // The writer writes from the front to the back. In one boot of the kernel, the last byte is there only after all
        // others, so another program has written here. A power cut, however, may keep the size and lose bytes.
        if intent.boot == boot || intent.boot == 0 || boot == 0 {
            let what = "the bytes of its last append are others than those that were appended".to_owned();
            return Ok(TailState::Foreign(what));
        }
        Ok(TailState::Torn(intent.from))
    }
}

fn foreign(size: u64, least: u64, most: u64) -> TailState {
    let what = if size < least {
        format!("it has {size} bytes, and {least} were appended: another program truncated or replaced it")
    } else {
        format!("it has {size} bytes, and at most {most} were appended: another program wrote to it")
    };
    TailState::Foreign(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(tail: Tail, size: u64, boot: u64, whole: bool) -> TailState {
        tail.judge(size, boot, |_| Ok::<_, ()>(whole)).unwrap()
    }

    #[test]
    fn a_settled_log_has_its_length_or_was_changed_by_another_program() {
        let tail = Tail::Settled(100);
        assert_eq!(judge(tail, 100, 1, false), TailState::Complete(100));
        for size in [0, 99, 101] {
            assert!(matches!(judge(tail, size, 1, true), TailState::Foreign(_)), "{size}");
        }
    }

    #[test]
    fn a_torn_append_is_cut_exactly_to_the_length_before_it() {
        let tail = Tail::Appending(Intent { from: 100, length: 20, checksum: 0, boot: 1 });
        for size in [100, 101, 119] {
            assert_eq!(judge(tail, size, 1, false), TailState::Torn(100), "{size}");
        }
        assert_eq!(judge(tail, 120, 1, true), TailState::Unsynced(120));
        for size in [0, 99, 121] {
            assert!(matches!(judge(tail, size, 1, true), TailState::Foreign(_)), "{size}");
        }
    }

    #[test]
    fn wrong_bytes_in_full_length_are_a_power_cut_after_a_reboot_and_another_program_before_it() {
        let tail = Tail::Appending(Intent { from: 100, length: 20, checksum: 0, boot: 1 });
        assert_eq!(judge(tail, 120, 2, false), TailState::Torn(100));
        assert!(matches!(judge(tail, 120, 1, false), TailState::Foreign(_)));
        assert!(matches!(judge(tail, 120, 0, false), TailState::Foreign(_)), "the boot is unknown");
    }
}
