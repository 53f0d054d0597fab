use std::str::FromStr;

/// The fields of `/proc/PID/stat`, numbered as in proc(5).
#[derive(Debug)]
pub(super) struct Stat<'a>(Vec<&'a str>);

impl<'a> Stat<'a> {
    /// `1 (name) S 0 …`: the name may contain anything, so the fields are counted from the last bracket.
    pub(super) fn parse(stat: &'a [u8]) -> Option<Self> {
        let end = stat.iter().rposition(|&byte| byte == b')')?;
        Some(Self(std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().collect()))
    }

    /// The text of a field; the first one after the name is number 3, the state.
    pub(super) fn text(&self, number: usize) -> Option<&'a str> {
        self.0.get(number.checked_sub(3)?).copied()
    }

    /// The value of a field.
    pub(super) fn value<T: FromStr>(&self, number: usize) -> Option<T> {
        self.text(number)?.parse().ok()
    }
}
