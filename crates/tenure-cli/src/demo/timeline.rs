use std::io::IsTerminal;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthStr;

use super::event::Tone;
use super::step::WorkerName;

/// The timeline on a page of this width: the time at the left, and a column for each worker. On a narrow terminal it has
/// one column, and each line names its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    width: usize,
}

impl Timeline {
    /// For standard output: as wide as the terminal, within limits.
    pub(super) fn new() -> Self {
        let out = std::io::stdout();
        let size = if out.is_terminal() { tcgetwinsize(&out).ok() } else { None };
        // A terminal that does not know its width reports zero.
        let width = size.map(|size| usize::from(size.ws_col)).filter(|&width| width > 0);
        Self::of_width(width.unwrap_or(DEFAULT_WIDTH))
    }

    fn of_width(width: usize) -> Self {
        Self { width: width.clamp(LEAST_WIDTH, MOST_WIDTH) }
    }

    /// A title.
    pub(super) fn title(self, text: &str) -> String {
        self.styled(text, Style::new().bold())
    }

    /// A paragraph.
    pub(super) fn paragraph(self, text: &str) -> String {
        self.styled(text, Style::new())
    }

    fn styled(self, text: &str, style: Style) -> String {
        let lines = wrap(text, self.width);
        lines.iter().map(|line| format!("{style}{line}{style:#}\n")).collect()
    }

    /// An explanation between two events.
    pub(super) fn note(self, text: &str) -> String {
        let dim = Style::new().dimmed();
        let lines = wrap(text, self.width - INDENT.len());
        lines.iter().map(|line| format!("{INDENT}{dim}{line}{dim:#}\n")).collect()
    }

    /// The heads of the columns.
    pub(super) fn head(self, a: u32, b: u32) -> String {
        let bold = Style::new().bold();
        let [a, b] = [("A", a), ("B", b)].map(|(name, number)| format!("{name} (process {number})"));
        let text = match self.lane() {
            Some(lane) => format!("{:>TIME$}{GAP}{a:<lane$}{GAP}{b}", "TIME"),
            None => return self.styled(&format!("{a}, {b}"), bold),
        };
        format!("{bold}{text}{bold:#}\n")
    }

    /// An event of a worker. `stopped` marks the column of a worker that is stopped meanwhile.
    pub(super) fn event(
        self,
        at: Duration,
        worker: WorkerName,
        stopped: Option<WorkerName>,
        text: &str,
        tone: Tone,
    ) -> String {
        let style = tone.style();
        let time = format!("{:.2}s", at.as_secs_f64());
        let mark = if stopped.is_some_and(|stopped| stopped != worker) { STOPPED } else { "" };
        let mut drawn = String::new();
        let Some(lane) = self.lane() else {
            let begin = format!("{time:>TIME$}{GAP}{worker}{GAP}");
            for (at, line) in wrap(text, self.width - begin.len()).iter().enumerate() {
                let begin = if at == 0 { begin.clone() } else { " ".repeat(begin.len()) };
                drawn.push_str(&format!("{begin}{style}{line}{style:#}\n"));
            }
            return drawn;
        };
        for (at, line) in wrap(text, lane).iter().enumerate() {
            let time = if at == 0 { time.as_str() } else { "" };
            let before = if worker == WorkerName::B { format!("{mark:<lane$}{GAP}") } else { String::new() };
            drawn.push_str(&format!("{time:>TIME$}{GAP}{before}{style}{line}{style:#}\n"));
        }
        drawn
    }

    /// Width of a worker's column; `None` if there is no room for two.
    fn lane(self) -> Option<usize> {
        let lane = (self.width - TIME - 2 * GAP.len()) / 2;
        (lane >= LEAST_LANE).then_some(lane)
    }
}

impl Tone {
    fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Pause => colour(AnsiColor::Yellow),
            Self::Bad => colour(AnsiColor::Red).bold(),
            Self::Good => colour(AnsiColor::Green).bold(),
        }
    }
}

/// The text in lines of at most this width. A longer word has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Width of the time.
const TIME: usize = 7;

const GAP: &str = "  ";

/// Indent of a note: it begins where the columns begin.
const INDENT: &str = "         ";

/// Mark of a stopped worker.
const STOPPED: &str = "╎";

/// A column must have room for a token and a few words.
const LEAST_LANE: usize = 26;

/// For a file or a pipe.
const DEFAULT_WIDTH: usize = 80;

/// A token and a worker's name fit.
const LEAST_WIDTH: usize = 32;

/// Longer lines are hard to read.
const MOST_WIDTH: usize = 110;

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: usize, worker: WorkerName, text: &str) -> String {
        let at = Duration::from_millis(2_514);
        let text = Timeline::of_width(width).event(at, worker, Some(WorkerName::A), text, Tone::Bad);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn each_worker_has_its_column_and_long_text_is_wrapped_inside_it() {
        let text = "granted, token 1794735088779001, and more";
        assert_eq!(
            drawn(80, WorkerName::A, text),
            "  2.51s  granted, token 1794735088779001,\n         and more\n"
        );
        assert_eq!(drawn(80, WorkerName::B, "short"), format!("  2.51s  ╎{}short\n", " ".repeat(35)));
    }

    #[test]
    fn on_a_narrow_terminal_there_is_one_column_and_no_line_is_too_long() {
        let text = "row 3 REFUSED: token 1794735088779001 has been there";
        assert_eq!(
            drawn(40, WorkerName::A, text),
            "  2.51s  A  row 3 REFUSED: token\n            1794735088779001 has been\n            there\n"
        );
        for width in 1..150 {
            for worker in [WorkerName::A, WorkerName::B] {
                let most = width.clamp(LEAST_WIDTH, MOST_WIDTH);
                for line in drawn(width, worker, text).lines() {
                    assert!(line.width() <= most, "{width}: {line:?}");
                }
            }
        }
    }
}
