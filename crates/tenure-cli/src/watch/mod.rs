//! `tenure watch`.

mod line;

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt;
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, Prefix, WatchEvent};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::args::{self, Args};
use crate::exit::Failure;
use crate::output;
use crate::store::{self, ChosenStore};
use line::Line;

/// Reports changes of leases until the reader closes the pipe.
pub(crate) fn watch(args: &Args, watch: &args::Watch) -> Result<ExitCode, Failure> {
    let prefix = Prefix::parse(&watch.prefix)?;
    let store = store::choose(args)?;
    store::block_on(async {
        tokio::select! {
            told = print_events(&store, &prefix, watch) => told,
            // At once, and not only at the next report, which may be in a week.
            () = reader_exited() => Ok(()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn print_events(store: &ChosenStore, prefix: &Prefix, watch: &args::Watch) -> Result<(), Failure> {
    let coordinator = connect(store, watch.json).await?;
    let mut events = coordinator.watch(prefix);
    if watch.renewals {
        events = events.renewals();
    }
    while let Some(event) = events.next().await {
        let Some(text) = line_of(&event, watch.json) else { continue };
        if !output::tell(&text)? {
            break;
        }
    }
    Ok(())
}

/// One event as a line of text or of JSON; `None` for an event that this command does not know.
pub(crate) fn line_of(event: &WatchEvent, json: bool) -> Option<String> {
    let line = Line::of(event)?;
    Some(if json { output::json_line(&line) } else { line.sentence() })
}

/// Waits for a store that does not exist yet, without creating it.
pub(crate) async fn connect(store: &ChosenStore, json: bool) -> Result<Coordinator, Failure> {
    let mut said = false;
    loop {
        if let Some(coordinator) = store.connect_to_read().await? {
            return Ok(coordinator);
        }
        if !std::mem::replace(&mut said, true) {
            let sentence = format!("there is no store at {} yet: waiting for it", store.url());
            let line = if json {
                serde_json::json!({ "event": "waiting", "message": sentence }).to_string()
            } else {
                format!("tenure: {sentence}")
            };
            output::say(&line);
        }
        BootClock.sleep_until(BootClock.now() + LOOK_PAUSE).await;
    }
}

/// Completes when the reader of standard output has exited. Anything but a pipe, such as a file, is never closed.
#[expect(deprecated, reason = "its replacement is unsafe code, and standard output stays open until the end")]
pub(crate) async fn reader_exited() {
    let Ok(out) = AsyncFd::with_interest(std::io::stdout(), Interest::ERROR) else { return pending().await };
    if out.ready(Interest::ERROR).await.is_err() {
        pending::<()>().await;
    }
}

/// Interval of checks for a store that does not exist yet.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
