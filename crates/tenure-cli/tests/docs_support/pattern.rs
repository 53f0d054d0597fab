//! Comparison of actual output with the output on a page.
//!
//! A page shows real output, which differs at each run. So some words are placeholders for any word of their kind:
//!
//! | on the page | stands for |
//! | --- | --- |
//! | `1794735088779000` | a token: the same one for the same number, and a greater one for a greater number |
//! | 32 or 64 hexadecimal digits | a nonce, a name, a hash: the same one for the same digits |
//! | `web-1:4711` | a process of this machine: the same one for the same number |
//! | `2026-11-15T05:30:00.250Z` | any time |
//! | `15s` or `2.51s` after *at most*, *about*, *for* or a time, or in a column | any duration |
//! | `4711` after *pid* | any process id |
//! | two spaces or more | two spaces or more: columns are as wide as their content |
//! | `[..]` | anything within a line |
//! | `...` alone on a line | any lines |

use std::collections::BTreeMap;

/// The known values of a page's placeholders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeMap<String, String>);

#[derive(Debug)]
enum Piece<'a> {
    Text(&'a str),
    Anything,
    Gap,
    Word(Kind, &'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Token,
    Digits,
    Process,
    Time,
    Duration,
    Pid,
}

impl Known {
    /// The known values after a comparison of these lines; `None` if they do not match.
    pub(crate) fn after(&self, expected: &[String], actual: &[String]) -> Option<Self> {
        let Some((first, rest)) = expected.split_first() else {
            return actual.is_empty().then(|| self.clone());
        };
        if first == "..." {
            return (0..=actual.len()).find_map(|skipped| self.after(rest, &actual[skipped..]));
        }
        let (line, others) = actual.split_first()?;
        self.after_line(first, line)?.after(rest, others)
    }

    pub(crate) fn after_line(&self, expected: &str, actual: &str) -> Option<Self> {
        self.after_pieces(&pieces(expected), actual)
    }

    fn after_pieces(&self, expected: &[Piece], actual: &str) -> Option<Self> {
        let Some((first, rest)) = expected.split_first() else {
            return actual.is_empty().then(|| self.clone());
        };
        match first {
            Piece::Text(text) => self.after_pieces(rest, actual.strip_prefix(text)?),
            Piece::Anything => {
                let mut ends = actual.char_indices().map(|(at, _)| at).chain([actual.len()]);
                ends.find_map(|at| self.after_pieces(rest, &actual[at..]))
            }
            Piece::Gap => {
                let after = actual.trim_start_matches(' ');
                (actual.len() >= after.len() + 2).then(|| self.after_pieces(rest, after))?
            }
            Piece::Word(kind, written) => {
                let (word, after) = actual.split_at(kind.length(actual)?);
                self.with(*kind, written, word)?.after_pieces(rest, after)
            }
        }
    }

    fn with(&self, kind: Kind, written: &str, actual: &str) -> Option<Self> {
        let mut known = self.clone();
        if matches!(kind, Kind::Token | Kind::Digits | Kind::Process) {
            let before = known.0.insert(written.to_owned(), actual.to_owned());
            if before.is_some_and(|before| before != actual) {
                return None;
            }
        }
        if kind == Kind::Token {
            let mut tokens =
                known.0.iter().filter(|(other, _)| Kind::Token.length(other) == Some(other.len()));
            tokens
                .all(|(other, real)| other.as_str().cmp(written) == real.as_str().cmp(actual))
                .then_some(())?;
        }
        Some(known)
    }

    /// Actual output, with the placeholders of the page where they are known.
    pub(crate) fn as_written(&self, actual: &str) -> String {
        self.0.iter().fold(actual.to_owned(), |text, (written, real)| text.replace(real, written))
    }
}

impl Kind {
    /// Length of the word of this kind at the start of a text.
    fn length(self, text: &str) -> Option<usize> {
        let word = text.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(text.len());
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        match self {
            Self::Token => (word == 16 && digits(text) == 16).then_some(16),
            Self::Digits => {
                let is_hex = |next: u8| next.is_ascii_digit() || (b'a'..=b'f').contains(&next);
                ([32, 64].contains(&word) && text.as_bytes()[..word].iter().all(|&next| is_hex(next)))
                    .then_some(word)
            }
            Self::Process => {
                let number = digits(text.strip_prefix(HOST)?.strip_prefix(':')?);
                (number > 0).then_some(HOST.len() + 1 + number)
            }
            Self::Time => {
                let form = "dddd-dd-ddTdd:dd:dd.dddZ";
                let time = text.get(..form.len())?;
                let fits =
                    |(next, form): (u8, u8)| if form == b'd' { next.is_ascii_digit() } else { next == form };
                time.bytes().zip(form.bytes()).all(fits).then_some(form.len())
            }
            Self::Duration => {
                if let Some(length) = decimal_seconds(text) {
                    return Some(length);
                }
                let mut rest = &text[..word];
                while !rest.is_empty() {
                    let number = digits(rest);
                    let unit =
                        ["ms", "d", "h", "m", "s"].into_iter().find(|unit| rest[number..].starts_with(unit));
                    rest = unit.filter(|_| number > 0).map(|unit| &rest[number + unit.len()..])?;
                }
                (word > 0).then_some(word)
            }
            Self::Pid => (word > 0 && digits(text) == word).then_some(word),
        }
    }
}

/// Length of a time with a decimal point, `2.51s`, at the start of a text.
fn decimal_seconds(text: &str) -> Option<usize> {
    let (seconds, rest) = text.split_once('.')?;
    let fraction = rest.find(|next: char| !next.is_ascii_digit())?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let ends = rest[fraction..].strip_prefix('s')?;
    let is_whole = is_number(seconds) && is_number(&rest[..fraction]);
    (is_whole && !ends.starts_with(|next: char| next.is_ascii_alphanumeric()))
        .then_some(seconds.len() + 1 + fraction + 1)
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    while at < line.len() {
        let (before, rest) = line.split_at(at);
        let (piece, length) = if rest.starts_with("[..]") {
            (Piece::Anything, 4)
        } else if rest.starts_with("  ") {
            (Piece::Gap, rest.len() - rest.trim_start_matches(' ').len())
        } else if let Some((kind, length)) = word(before, rest) {
            (Piece::Word(kind, &rest[..length]), length)
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        pieces.extend((from < at).then(|| Piece::Text(&line[from..at])));
        pieces.push(piece);
        at += length;
        from = at;
    }
    pieces.extend((from < line.len()).then(|| Piece::Text(&line[from..])));
    pieces
}

/// The placeholder that begins here, if there is one.
fn word(before: &str, rest: &str) -> Option<(Kind, usize)> {
    if before.ends_with(|last: char| last.is_ascii_alphanumeric()) {
        return None;
    }
    let is_after = |words: &[&str]| words.iter().any(|words| before.ends_with(words));
    let varies = is_after(&["at most ", "about ", "for ", "Z, ", "  "]);
    let kinds = [Kind::Time, Kind::Digits, Kind::Token, Kind::Process];
    let kinds = kinds.into_iter().chain(varies.then_some(Kind::Duration));
    let kinds = kinds.chain(is_after(&["pid ", "\"pid\":"]).then_some(Kind::Pid));
    kinds.filter_map(|kind| Some((kind, kind.length(rest)?))).next()
}

/// Name of this machine on every page.
pub(crate) const HOST: &str = "web-1";
