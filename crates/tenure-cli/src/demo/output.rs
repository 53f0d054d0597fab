use super::batch::{self, ROWS, money};
use super::event::DemoEvent;
use super::outcome::Outcome;
use super::plan::DemoPlan;
use super::round::PAUSED_ROW;
use super::step::WorkerName;
use super::timeline::Timeline;
use super::worker::LEASE;
use crate::duration;
use crate::exit::Failure;
use crate::lease_view::{FREE, SUSPECT};
use crate::output;

/// The output of the demo: a timeline, or one JSON object per event.
#[derive(Debug)]
pub(super) struct DemoOutput {
    /// `None` for JSON.
    timeline: Option<Timeline>,
}

impl DemoOutput {
    pub(super) fn new(json: bool) -> Self {
        Self { timeline: (!json).then(Timeline::new) }
    }

    pub(super) fn introduce(&self, plan: &DemoPlan) -> Result<(), Failure> {
        let [ttl, pause] = [plan.ttl, plan.pause].map(duration::exact);
        self.print(|timeline| {
            timeline.paragraph(&format!(
                "Two processes settle a batch of {ROWS} payments, {} in all. Each appends one row per payment to a ledger, \
                 and only while it holds the lease {LEASE}, with a ttl of {ttl}. The demo stops process A for {pause}, \
                 after A has checked its lease for row {PAUSED_ROW} and before it writes that row. A paused virtual \
                 machine, a swapping host or a long garbage collection does the same.",
                money(batch::total())
            ))
        })
    }

    /// A round begins with these two processes.
    pub(super) fn begin(&self, fenced: bool, a: u32, b: u32) -> Result<(), Failure> {
        let title = if fenced {
            "With the fence: the ledger refuses a token smaller than one it has seen"
        } else {
            "Without the fence: the ledger accepts every row"
        };
        self.print(|timeline| format!("\n{}\n{}", timeline.title(title), timeline.head(a, b)))
    }

    pub(super) fn event(&self, event: &DemoEvent<'_>, stopped: Option<WorkerName>) -> Result<(), Failure> {
        if self.timeline.is_none() {
            return output::answer_json(&event.fields());
        }
        let Some((words, tone)) = event.words() else { return Ok(()) };
        self.print(|timeline| timeline.event(event.at, event.worker, stopped, &words, tone))
    }

    /// An explanation between two events.
    pub(super) fn note(&self, text: &str) -> Result<(), Failure> {
        self.print(|timeline| timeline.note(text))
    }

    pub(super) fn summary(&self, outcome: &Outcome) -> Result<(), Failure> {
        if self.timeline.is_none() {
            return output::answer_json(&outcome.fields());
        }
        self.print(|timeline| {
            let mut text = "\n".to_owned();
            for (name, value) in outcome.counts() {
                let value = match name {
                    "rows written twice" if value != "0" => SUSPECT.paint(&value),
                    "money counted" if !outcome.tally.is_right() => SUSPECT.paint(&value),
                    "stale writes refused" if value != "0" => FREE.paint(&value),
                    _ => value,
                };
                text.push_str(&format!("  {name:<22}{value}\n"));
            }
            // A failure is reported on standard error.
            if let Ok(sentence) = outcome.verdict() {
                text.push_str(&format!("\n{}", timeline.paragraph(&sentence)));
            }
            text
        })
    }

    /// The last words of a demo that has shown what it promises.
    pub(super) fn conclude(&self, only_accident: bool) -> Result<(), Failure> {
        let text = if only_accident {
            "Run tenure demo without --no-fence to see the fence."
        } else {
            "A lease cannot stop a paused process from acting late. The token can, if the resource checks it."
        };
        self.print(|timeline| format!("\n{}", timeline.title(text)))
    }

    fn print(&self, text: impl FnOnce(Timeline) -> String) -> Result<(), Failure> {
        match self.timeline {
            Some(timeline) => output::answer(&text(timeline)),
            None => Ok(()),
        }
    }
}
