use std::fmt;

/// The trace of one seed: always as a hash, as text only on request.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace that also keeps text if `readable`.
    pub(crate) fn new(readable: bool) -> Self {
        Self { hash: 0xCBF2_9CE4_8422_2325, lines: readable.then(Vec::new) }
    }

    /// Mixes a number into the hash.
    pub(crate) fn mix(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(5) ^ number).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    /// Adds a line if the trace keeps text. Otherwise the line is not even formatted.
    pub(crate) fn line(&mut self, now: u64, who: fmt::Arguments<'_>, what: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            let who = who.to_string();
            lines.push(format!("{}  {who:<9} {what}", Moment(now)));
        }
    }

    /// The hash of everything so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The text, if it was kept.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// Displays an instant of true time in human-readable form: minutes, seconds, microseconds.
pub(crate) struct Moment(pub(crate) u64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0 / 1000;
        let (minutes, seconds) = (micros / 60_000_000, micros / 1_000_000 % 60);
        write!(f, "{minutes:>3}:{seconds:02}.{:06}", micros % 1_000_000)
    }
}
