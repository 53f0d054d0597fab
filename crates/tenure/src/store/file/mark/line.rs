use super::boots::Boots;
use crate::host::checksum::checksum;

/// Content of the mark. It is written in place under a lock, in one piece that is smaller than a sector. It is read
/// without a lock, and the checksum reveals a partial write.
///
/// ```text
/// tenure-mark 1 <time> <time on the disk> <boots> <checksum>
/// ```
///
/// Earlier programs wrote the clock domain of the last writer in the place of the boots. They can read this format: for
/// them the list is one long domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkLine {
    pub(super) micros: u64,
    /// The time that is certainly on the disk.
    pub(super) synced: u64,
    pub(super) boots: Boots,
}

impl MarkLine {
    /// Maximum length of the written form, also in earlier programs, which read no more than this.
    pub(super) const MAX_BYTES: usize = 256;

    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.lines().next()?.split(' ').filter(|word| !word.is_empty()).collect();
        let ["tenure-mark", "1", micros, synced, boots, sum] = words[..] else { return None };
        let (micros, synced) = (micros.parse().ok()?, synced.parse().ok()?);
        (sum == check(micros, synced, boots)).then(|| Self { micros, synced, boots: Boots::parse(boots) })
    }
}

impl std::fmt::Display for MarkLine {
    /// Always of the same length, so that a shorter line leaves no rest of a longer one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { micros, synced, boots } = self;
        let (boots, width) = (boots.to_string(), Boots::MAX_BYTES);
        let sum = check(*micros, *synced, &boots);
        writeln!(f, "tenure-mark 1 {micros:020} {synced:020} {boots:width$} {sum}")
    }
}

fn check(micros: u64, synced: u64, boots: &str) -> String {
    format!("{:016x}", checksum(&[format!("{micros} {synced} {boots}").as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_length_and_half_a_line_is_refused() {
        let boots = |count: usize| (0..count).fold(Boots::default(), |boots, id| boots.with(id as u64));
        let line = |micros, count| MarkLine { micros, synced: 5, boots: boots(count) };
        let (short, long) = (line(7, 1), line(u64::MAX, Boots::MAX));
        assert_eq!(short.to_string().len(), long.to_string().len());
        assert!(long.to_string().len() <= MarkLine::MAX_BYTES);
        for line in [short, long] {
            let text = line.to_string();
            assert_eq!(MarkLine::parse(&text), Some(line));
            for cut in 0..text.len() - 1 {
                assert_eq!(MarkLine::parse(&text[..cut]), None, "{cut}");
            }
        }
    }

    /// The line that version 0.1.0 wrote.
    #[test]
    fn a_line_of_version_0_1_is_read_with_its_boot_and_without_remains_of_a_longer_line() {
        let boot = "0f3c7a52-1b7e-4f0e-9a53-0d6a1c1f2b3d";
        let domain = format!("{boot},time:[4026531834]+0.0");
        let sum = check(1_794_770_245_018_001, 1_794_770_240_000_000, &domain);
        let early =
            format!("tenure-mark 1 01794770245018001 01794770240000000 {domain:128} {sum}\nleft behind\n");
        let line = MarkLine::parse(&early).unwrap();
        assert_eq!((line.micros, line.synced), (1_794_770_245_018_001, 1_794_770_240_000_000));
        assert!(line.boots.contains(Boots::id(Some(boot))));
    }
}
