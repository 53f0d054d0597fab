use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use tenure_probe::Progress;

use crate::output;

/// Reports the progress of a probe: on one line of a terminal, or with one line for each part.
#[derive(Debug)]
pub(crate) struct ProbeProgress {
    style: ProgressStyle,
    last: Mutex<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressStyle {
    Silent,
    Lines,
    OneLine,
}

impl ProbeProgress {
    pub(crate) fn new(silent: bool) -> Self {
        let style = match (silent, std::io::stderr().is_terminal()) {
            (true, _) => ProgressStyle::Silent,
            (false, true) => ProgressStyle::OneLine,
            (false, false) => ProgressStyle::Lines,
        };
        Self { style, last: Mutex::new("") }
    }

    /// Prints a separate sentence.
    pub(crate) fn say(&self, sentence: &str) {
        self.end();
        if self.style != ProgressStyle::Silent {
            output::say_without_waiting(&format!("tenure: {sentence}"));
        }
    }

    pub(crate) fn tell(&self, progress: Progress) {
        let Progress { done, of, title, step, .. } = progress;
        match self.style {
            ProgressStyle::Silent => {}
            ProgressStyle::OneLine => rewrite(&format!("tenure: {done} of {of}: {title}: {step}")),
            ProgressStyle::Lines => {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if std::mem::replace(&mut *last, title) != title {
                    output::say_without_waiting(&format!("tenure: {done} of {of}: {title}"));
                }
            }
        }
    }

    /// Clears the line for the next output.
    pub(crate) fn end(&self) {
        if self.style == ProgressStyle::OneLine {
            rewrite("");
        }
    }
}

/// Replaces the last line, cut to one line.
fn rewrite(line: &str) {
    let line: String = line.chars().take(LINE_MAX).collect();
    let _ = std::io::stderr().lock().write_all(format!("\r\x1b[K{line}").as_bytes());
}

/// Fits on nearly every terminal.
const LINE_MAX: usize = 78;
