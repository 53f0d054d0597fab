//! Content on standard output: as it is for a program, and without control characters for a terminal.

use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Read, StdoutLock, Write};
use std::path::Path;

use super::file::unreadable;
use crate::exit::Failure;
use crate::output::plain;

/// Prints a file, or the first bytes of a log. It is opened once: a writer that replaces it meanwhile does not change what is
/// printed. Only a part of it is in memory at a time.
pub(super) fn file(path: &Path, log_length: Option<u64>) -> Result<(), Failure> {
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut content = BufReader::with_capacity(BUFFER, file.take(log_length.unwrap_or(u64::MAX)));
    let mut out = Output::new();
    loop {
        let piece = content.fill_buf().map_err(|error| unreadable(path, &error))?;
        if piece.is_empty() || !out.write(piece)? {
            return out.finish();
        }
        let read = piece.len();
        content.consume(read);
    }
}

/// Prints these bytes.
pub(super) fn bytes(content: &[u8]) -> Result<(), Failure> {
    let mut out = Output::new();
    out.write(content)?;
    out.finish()
}

struct Output {
    out: StdoutLock<'static>,
    is_terminal: bool,
}

impl Output {
    fn new() -> Self {
        let out = std::io::stdout().lock();
        let is_terminal = out.is_terminal();
        Self { out, is_terminal }
    }

    /// Returns false if the reader has exited, which is no error.
    fn write(&mut self, piece: &[u8]) -> Result<bool, Failure> {
        let written = if self.is_terminal {
            self.out.write_all(for_terminal(piece).as_bytes())
        } else {
            self.out.write_all(piece)
        };
        is_read(written)
    }

    fn finish(mut self) -> Result<(), Failure> {
        is_read(self.out.flush()).map(drop)
    }
}

fn is_read(written: std::io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            Err(Failure::unavailable(format!("the content could not be written to standard output: {error}")))
        }
    }
}

/// Text that moves no cursor. A character that two pieces share is shown as unreadable.
fn for_terminal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for part in String::from_utf8_lossy(bytes).split_inclusive(['\n', '\t']) {
        let words = part.trim_end_matches(['\n', '\t']);
        text += &plain(words);
        text += &part[words.len()..];
    }
    text
}

/// Bytes that are in memory at a time.
const BUFFER: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_lines_and_tabs_and_no_control_characters() {
        assert_eq!(for_terminal(b"a\tb\n\nc"), "a\tb\n\nc");
        assert_eq!(for_terminal(b"\x1b[31mred\n"), "\\u{1b}[31mred\n");
        assert_eq!(for_terminal(b"\xff\n"), "\u{fffd}\n");
    }
}
