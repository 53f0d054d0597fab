//! `tenure probe`.

mod answer;
mod progress;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tenure_probe::{CleanUp, Fitness, Plan, PlanError, Probe, ProbeError, Qualification};
use tenure_store::Store;

use crate::args::{self, Args};
use crate::exit::{self, Failure};
use crate::output::{self, plain};
use crate::signals::{self, Blocked, Signals};
use crate::store::{self, ChosenStore};
use answer::ProbeAnswer;
use progress::ProbeProgress;

/// Tests whether a store is fit for leases, and always cleans up.
pub(crate) fn probe(args: &Args, probe: &args::Probe) -> Result<ExitCode, Failure> {
    let plan = plan(probe).map_err(|error| Failure::usage(format!("{error}. See tenure probe --help")))?;
    let store = match &probe.url {
        Some(url) => store::named(url)?,
        None => store::choose(args)?,
    };
    // Before the first thread, which inherits the mask.
    let blocked = Blocked::now().map_err(signals::no_signals)?;
    store::block_on(async {
        let signals = blocked.take().map_err(signals::no_signals)?;
        let opened = open(plan, &store)?;
        run(&opened, &store, probe, &signals).await
    })
}

fn plan(probe: &args::Probe) -> Result<Plan, PlanError> {
    Plan::default().racers(probe.racers)?.rounds(probe.rounds)?.samples(probe.samples)
}

fn open(plan: Plan, store: &ChosenStore) -> Result<Probe, Failure> {
    let mut run = [0; 16];
    rustix::rand::getrandom(&mut run, rustix::rand::GetRandomFlags::empty()).map_err(|error| {
        Failure::unavailable(format!("this machine has no randomness to name the probe by: {error}"))
    })?;
    let open = || -> Result<Arc<dyn Store>, Failure> { store.open_one_more() };
    let probe = Probe::open(plan, u128::from_ne_bytes(run), open)?;
    Ok(match store.with_other_etags() {
        Some((other, bare)) => probe.with_other_etags(other.open_one_more()?, bare),
        None => probe,
    })
}

async fn run(
    opened: &Probe,
    store: &ChosenStore,
    probe: &args::Probe,
    signals: &Signals,
) -> Result<ExitCode, Failure> {
    let progress = ProbeProgress::new(probe.quiet || probe.json);
    let provider = store.provider()?;
    progress.say(&format!(
        "probing {}{} in its own scratch area, {}, with about {} calls: clouds charge for each",
        plain(&store.url()),
        provider.map(|name| format!(" of {name}")).unwrap_or_default(),
        opened.scratch_area(),
        opened.calls_expected()
    ));
    let qualified = {
        let told = |step| progress.tell(step);
        tokio::select! {
            qualified = opened.run(&told) => Ok(qualified),
            signal = signals.ended() => Err(signal),
        }
    };
    if let Err(signal) = &qualified
        && opened.calls().writes == 0
    {
        // There is nothing to clean up, and perhaps no store that answers.
        progress.end();
        return Ok(ExitCode::from(128 + *signal as u8));
    }
    progress.say("cleaning up");
    let cleaned = tokio::select! {
        cleaned = opened.clean_up(CLEANING_MAX) => Some(cleaned),
        // A second signal skips the cleanup.
        _ = signals.ended() => None,
    };
    progress.end();
    // The JSON answer includes it, if there is one.
    let is_told = probe.json && matches!(qualified, Ok(Ok(_)));
    if let Some(sentence) = what_is_left(store, opened.scratch_area(), cleaned.as_ref()).filter(|_| !is_told)
    {
        output::warn(&sentence, probe.json);
    }
    match qualified {
        Err(signal) => Ok(ExitCode::from(128 + signal as u8)),
        Ok(Err(error)) => Err(failure(error)),
        Ok(Ok(qualification)) => {
            let answer = ProbeAnswer {
                qualification: &qualification,
                store,
                provider,
                probe: opened,
                args: probe,
                cleaned: cleaned.as_ref(),
            };
            if probe.json {
                output::answer_json(&answer.json())?;
            } else {
                output::answer(&answer.words())?;
            }
            // The store has answered all along: an error now is not worth a failure.
            let risks = store.risks().await.unwrap_or_else(|error| {
                vec![format!("it is not known whether a failover may lose leases: {error}")]
            });
            for risk in risks {
                output::warn(&format!("{}: {risk}", plain(&store.url())), probe.json);
            }
            verdict(store, &qualification)
        }
    }
}

fn verdict(store: &ChosenStore, qualification: &Qualification) -> Result<ExitCode, Failure> {
    let Fitness::Refused(reasons) = &qualification.fitness else { return Ok(ExitCode::SUCCESS) };
    store.discard_verdict()?;
    let reason = reasons.first().map(String::as_str).unwrap_or_default();
    let sentence =
        format!("{} is refused: {reason}. Use another store, or report this to its vendor", store.url());
    Err(Failure::new(exit::REFUSED, sentence))
}

fn failure(error: ProbeError) -> Failure {
    match error {
        ProbeError::Refused { .. } => Failure::new(exit::REFUSED, error.to_string()),
        ProbeError::Missing { .. } => Failure::misconfigured(error.to_string()),
        _ => Failure::unavailable(format!(
            "{error}. Nothing is known about it: try again when it can be reached and used"
        )),
    }
}

/// The message about the cleanup; `None` if nothing is left.
fn what_is_left(store: &ChosenStore, scratch_area: &str, cleaned: Option<&CleanUp>) -> Option<String> {
    let (place, how) = (where_they_are(store, scratch_area), how_to_remove(store, scratch_area));
    match cleaned {
        Some(CleanUp { left: 0, older: 0, .. }) => None,
        Some(CleanUp { left: 0, older, .. }) => Some(format!("removed {older} entries of an earlier probe")),
        Some(CleanUp { left, why, .. }) => {
            let why = why.as_deref().unwrap_or("they came late");
            Some(format!("at most {left} of its entries are left {place}: {why}. {how}"))
        }
        None => {
            Some(format!("entries are left {place}: the probe was interrupted before it removed them. {how}"))
        }
    }
}

fn where_they_are(store: &ChosenStore, scratch_area: &str) -> String {
    format!("in {}, with names that begin with {scratch_area}/, which ls hides", store.url())
}

fn how_to_remove(store: &ChosenStore, scratch_area: &str) -> String {
    let url = store.url();
    let bucket = url.split('?').next().unwrap_or_default();
    // Characters that are escaped in a URL have another form in that command.
    if bucket.starts_with("s3://") && !bucket.contains('%') {
        let options = url.split(['?', '&']).find_map(|option| option.strip_prefix("endpoint="));
        let server = options.map(|endpoint| format!(" --endpoint-url {endpoint}")).unwrap_or_default();
        format!("Remove them with aws s3 rm --recursive {bucket}/{scratch_area}/{server}")
    } else if let Some(place) = bucket.strip_prefix("az://").filter(|place| !place.contains('%')) {
        let (container, prefix) = place.split_once('/').unwrap_or((place, ""));
        let pattern =
            if prefix.is_empty() { scratch_area.to_owned() } else { format!("{prefix}/{scratch_area}") };
        format!("Remove them with az storage blob delete-batch --source {container} --pattern '{pattern}/*'")
    } else if bucket.starts_with("gs://") && !bucket.contains('%') && !url.contains("endpoint=") {
        format!("Remove them with gcloud storage rm --recursive {bucket}/{scratch_area}/")
    } else {
        "A probe on a later day removes them if it may delete".to_owned()
    }
}

/// Enough for a few hundred removals on a remote store.
const CLEANING_MAX: Duration = Duration::from_secs(60);
