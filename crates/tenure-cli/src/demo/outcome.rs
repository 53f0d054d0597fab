use serde::Serialize;

use super::batch::{self, ROWS, money};
use super::plan::DemoPlan;
use super::round::PAUSED_ROW;
use super::tally::Tally;
use crate::duration;

/// The result of a round.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) plan: DemoPlan,
    pub(super) fenced: bool,
    pub(super) tally: Tally,
    /// Writes that the ledger refused.
    pub(super) refused: u32,
    /// True if A was stopped between its check and its write.
    pub(super) was_paused: bool,
    /// True if B had taken over and read the ledger before A was continued.
    pub(super) taken_over: bool,
    /// True if A found that its lease was lost.
    pub(super) a_lost: bool,
    /// The same for B, which is never stopped: the machine is too busy.
    pub(super) b_lost: bool,
}

/// The fields of a summary in JSON are a contract: `docs/reference/command/demo.md`.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    event: &'static str,
    fence: bool,
    ttl_ms: u64,
    pause_ms: u64,
    taken_over: bool,
    rows_expected: u32,
    rows_written: u32,
    rows_twice: &'a [u32],
    cents_expected: u64,
    cents_counted: u64,
    stale_writes_refused: u32,
    stale_rows_accepted: u32,
    shown: bool,
    message: String,
}

impl Outcome {
    /// What the round has shown; an error if it is not what the demo promises.
    pub(super) fn verdict(&self) -> Result<String, String> {
        let [ttl, pause] = [self.plan.ttl, self.plan.pause].map(duration::exact);
        let Tally { rows_twice, rows_missing, stale_rows, .. } = &self.tally;
        if self.fenced && (*stale_rows > 0 || !rows_twice.is_empty()) {
            return Err(format!(
                "the fenced ledger accepted {stale_rows} stale rows, and has rows {rows_twice:?} twice. Report this as a \
                 bug"
            ));
        }
        if !self.was_paused || self.b_lost {
            let what =
                if self.b_lost { "process B lost its lease" } else { "process A lost its lease too early" };
            return Err(format!("{what}: the machine is too busy for a ttl of {ttl}. Use a longer --ttl"));
        }
        if !rows_missing.is_empty() {
            return Err(format!(
                "rows {rows_missing:?} of the batch are missing in the ledger. Report this as a bug"
            ));
        }
        match (self.taken_over, self.fenced) {
            (true, true) if self.refused == 0 => {
                Err("the fenced ledger refused no write of process A. Report this as a bug".to_owned())
            }
            (true, true) => Ok(format!(
                "The ledger refused row {PAUSED_ROW} of A, in the same step as the write, because the newer token of B had \
                 been there. Every payment is in it once."
            )),
            (true, false) if rows_twice.is_empty() => {
                Err("process A wrote no row twice. Report this as a bug".to_owned())
            }
            (true, false) => Ok(format!(
                "A checked its lease before every row, and still wrote after B had taken over. {} is in the ledger twice.",
                money(self.tally.cents_counted.saturating_sub(batch::total()))
            )),
            (false, _) if self.plan.outlasts_the_lease() => Err(format!(
                "process B did not take over within a pause of {pause}: the machine is too busy. Try again"
            )),
            (false, _) if !self.a_lost => Ok(format!(
                "The pause of {pause} was shorter than the ttl of {ttl}: A still held its lease, and B did not take over. \
                 The token of A is the newest, so row {PAUSED_ROW} of A is right, and accepted with and without a fence."
            )),
            (false, _) if self.refused == 0 && rows_twice.is_empty() => Ok(format!(
                "A continued just before B took over. Its token was still the newest, so row {PAUSED_ROW} of A is right, and \
                 accepted with and without a fence. The next check of A failed, and B finished the batch."
            )),
            (false, true) => Ok(format!(
                "A continued just as B took over. The ledger had seen the newer token, and refused row {PAUSED_ROW} of A."
            )),
            (false, false) => Ok(format!(
                "A continued just as B took over, and both wrote row {PAUSED_ROW}: it is there twice."
            )),
        }
    }

    /// The summary as fields for JSON.
    pub(super) fn fields(&self) -> impl Serialize {
        let verdict = self.verdict();
        Summary {
            event: "summary",
            fence: self.fenced,
            ttl_ms: self.plan.ttl.as_millis() as u64,
            pause_ms: self.plan.pause.as_millis() as u64,
            taken_over: self.taken_over,
            rows_expected: ROWS,
            rows_written: self.tally.rows_written,
            rows_twice: &self.tally.rows_twice,
            cents_expected: batch::total(),
            cents_counted: self.tally.cents_counted,
            stale_writes_refused: self.refused,
            stale_rows_accepted: self.tally.stale_rows,
            shown: verdict.is_ok(),
            message: verdict.unwrap_or_else(|missed| missed),
        }
    }

    /// The counts, as names and values.
    pub(super) fn counts(&self) -> [(&'static str, String); 6] {
        let tally = &self.tally;
        [
            ("rows expected", ROWS.to_string()),
            ("rows written", tally.rows_written.to_string()),
            ("rows written twice", tally.rows_twice.len().to_string()),
            ("money expected", money(batch::total())),
            ("money counted", money(tally.cents_counted)),
            ("stale writes refused", self.refused.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The outcome of a demo that went as planned.
    fn outcome(fenced: bool) -> Outcome {
        let plan = DemoPlan { ttl: Duration::from_secs(2), pause: Duration::from_secs(5) };
        let tally = Tally {
            rows_written: ROWS + u32::from(!fenced),
            rows_twice: if fenced { vec![] } else { vec![PAUSED_ROW] },
            rows_missing: vec![],
            cents_counted: batch::total() + if fenced { 0 } else { 21_000 },
            stale_rows: u32::from(!fenced),
        };
        let refused = u32::from(fenced);
        Outcome {
            plan,
            fenced,
            tally,
            refused,
            was_paused: true,
            taken_over: true,
            a_lost: true,
            b_lost: false,
        }
    }

    #[track_caller]
    fn misses(outcome: Outcome, words: &str) {
        let missed = outcome.verdict().unwrap_err();
        assert!(missed.contains(words), "{missed}");
    }

    #[test]
    fn the_accident_and_the_refusal_are_what_the_demo_promises() {
        assert!(outcome(false).verdict().unwrap().contains("210.00 is in the ledger twice"));
        assert!(outcome(true).verdict().unwrap().contains("refused row 3 of A"));
    }

    #[test]
    fn a_fenced_ledger_with_a_stale_row_is_not() {
        let fenced = || outcome(true);
        misses(Outcome { refused: 0, ..fenced() }, "refused no write");
        misses(Outcome { tally: outcome(false).tally, ..fenced() }, "accepted 1 stale rows");
        let tally = Tally { rows_missing: vec![8], ..fenced().tally };
        misses(Outcome { tally, ..fenced() }, "missing");
        // A refusal and a busy machine do not excuse a stale row that was accepted.
        let tally = Tally { stale_rows: 1, ..fenced().tally };
        misses(Outcome { tally, refused: 3, b_lost: true, ..fenced() }, "accepted 1 stale rows");
    }

    #[test]
    fn a_demo_without_an_accident_is_not() {
        misses(Outcome { tally: outcome(true).tally, ..outcome(false) }, "no row twice");
        for fenced in [false, true] {
            misses(Outcome { was_paused: false, ..outcome(fenced) }, "process A lost its lease too early");
            misses(Outcome { b_lost: true, ..outcome(fenced) }, "Use a longer --ttl");
            let tally = outcome(true).tally;
            misses(Outcome { taken_over: false, tally, ..outcome(fenced) }, "did not take over");
        }
    }

    #[test]
    fn a_pause_that_the_lease_survives_is_explained() {
        for fenced in [false, true] {
            let plan = DemoPlan { pause: Duration::from_secs(1), ..outcome(true).plan };
            let short = || Outcome { plan, fenced, taken_over: false, refused: 0, ..outcome(true) };
            let held = Outcome { a_lost: false, ..short() }.verdict().unwrap();
            assert!(held.contains("still held its lease") && held.contains("newest"), "{held}");
            assert!(short().verdict().unwrap().contains("just before B took over"));
        }
        let plan = DemoPlan { pause: Duration::from_secs(2), ..outcome(true).plan };
        let both = Outcome { plan, taken_over: false, ..outcome(false) }.verdict().unwrap();
        assert!(both.contains("it is there twice"), "{both}");
        let late = Outcome { plan, taken_over: false, ..outcome(true) }.verdict().unwrap();
        assert!(late.contains("refused row 3"), "{late}");
    }
}
