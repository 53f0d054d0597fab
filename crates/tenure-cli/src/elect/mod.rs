//! `tenure elect`: runs a command once per term, and campaigns again.
//!
//! Each term is one [`run`](crate::run), with the same watchdog and the same ladder. Supervisor and watchdog must fork
//! before their process has a second thread, and a connected process has one. So the process executes itself again for the
//! next term: it keeps its process id, and starts with nothing left of the term before.

mod pause;
mod state;

use std::process::ExitCode;

use serde_json::json;
use tenure::Key;
use tenure::record::Record;
use tenure_core::election::TermEnd;

use crate::args::{self, Args, Run, Waiting};
use crate::exit::{self, Failure};
use crate::progress::{Importance, Notice, ProgressOutput, Verbosity};
use crate::run::{self, CallerAttributes, RunOutcome, TermOutcome};
use crate::signals::{self, Blocked, Reload};
use crate::{duration, store};
use pause::Pauses;
pub(crate) use state::ElectState;

/// Runs the command in every term of this process.
pub(crate) fn elect(args: &Args, elect: &args::Elect) -> Result<ExitCode, Failure> {
    Key::parse(&elect.name)?;
    elect.check()?;
    let state = ElectState::inherited();
    let caller = CallerAttributes::now(&state.blocked());
    let outcome = run::run_term(args, &elect.run(), &caller);
    if elect.once {
        return outcome.and_then(RunOutcome::exit);
    }
    let campaign = match outcome {
        Ok(RunOutcome::GaveUp(code)) => return Ok(code),
        Ok(RunOutcome::Term(term)) if term.asked_to_end || term.cannot_start() => return term.exit,
        Ok(RunOutcome::Term(term)) => Campaign::after_term(elect, &state, term),
        Ok(RunOutcome::NotStarted(failure)) => Campaign::after_failure(elect, &state, failure),
        // The store was reachable in the first campaign, so the configuration is right: a retry can help.
        Err(failure) if failure.is(exit::UNAVAILABLE) && state.is_later() => {
            Campaign::after_failure(elect, &state, failure)
        }
        Err(failure) => return Err(failure),
    };
    campaign.say(elect, &store::choose(args)?.url());
    let blocked = Blocked::now().map_err(signals::no_signals)?;
    if let Some(signal) = blocked.ended_within(campaign.pauses.pause, Reload::Ignored) {
        return Ok(ExitCode::from(128 + signal as u8));
    }
    caller.restore();
    Err(ElectState::execute_again(campaign.pauses.failures, &caller.blocked_since()))
}

/// The next campaign.
struct Campaign {
    /// The reason, in JSON and in words.
    after: &'static str,
    sentence: String,
    importance: Importance,
    pauses: Pauses,
}

impl Campaign {
    fn after_term(elect: &args::Elect, state: &ElectState, term: TermOutcome) -> Self {
        let after = match term.end {
            TermEnd::Released => "ended",
            TermEnd::Revoked => "revoked",
            TermEnd::Lost => "lost",
        };
        // A command that was stopped may have lost work.
        let importance = if term.exit.is_ok() { Importance::News } else { Importance::Trouble };
        let pauses = Pauses::after_term(elect.supervision.ttl, term.end, term.lasted, state.failures());
        Self { after, sentence: term.sentence, importance, pauses }
    }

    fn after_failure(elect: &args::Elect, state: &ElectState, failure: Failure) -> Self {
        let pauses = Pauses::after_failure(elect.supervision.ttl, state.failures());
        let (after, sentence) = ("unavailable", failure.to_string());
        Self { after, sentence, importance: Importance::Trouble, pauses }
    }

    fn say(&self, elect: &args::Elect, store: &str) {
        let Self { after, sentence, importance, pauses } = self;
        let when = match pauses.pause {
            none if none.is_zero() => "at once".to_owned(),
            pause => format!("in {}", duration::at_most(pause)),
        };
        let verbosity = Verbosity::of(elect.quiet, elect.supervision.verbose);
        ProgressOutput::new(verbosity, elect.supervision.json, &elect.name, store).say(&Notice {
            name: "campaigning",
            fields: json!({
                "after": after,
                "message": sentence,
                "pause_ms": duration::millis_up(pauses.pause),
            }),
            sentence: format!("{sentence}. Campaigning for {} again {when}", elect.name),
            importance: *importance,
        });
    }
}

impl TermOutcome {
    /// True if CMD could not be started, which the next term would not change.
    fn cannot_start(&self) -> bool {
        matches!(&self.exit, Err(failure) if !failure.is(exit::LOST))
    }
}

impl args::Elect {
    /// Refuses an announcement that no record could have, before anything is started.
    fn check(&self) -> Result<(), Failure> {
        let value = self.announcement.value.as_deref().unwrap_or_default();
        if value.len() > Record::VALUE_MAX {
            let (max, is) = (Record::VALUE_MAX, value.len());
            return Err(Failure::usage(format!("--value has at most {max} bytes, not {is}: shorten it")));
        }
        Ok(())
    }

    /// One term.
    fn run(&self) -> Run {
        Run {
            name: self.name.clone(),
            slots: None,
            supervision: self.supervision.clone(),
            waiting: Waiting { wait: None, wait_seconds: None, no_wait: false },
            once_per: None,
            count_failures: false,
            conflict_exit_code: exit::HELD,
            quiet: self.quiet,
            taking: None,
            announcement: self.announcement.clone(),
            reload: Reload::Ignored,
            command: self.command.clone(),
        }
    }
}
