//! `tenure leader`: the leader of an election, now, once there is one, or at every change.

mod view;

use std::process::ExitCode;

use futures_util::StreamExt;
use serde::Serialize;
use tenure::{Coordinator, Error, Key, Observation, Prefix, Standing, WatchEvent};
use tenure_core::election::LeaderFilter;

pub(crate) use view::LeaderView;

use crate::args::{self, Args};
use crate::exit::{self, Failure};
use crate::lease_view::LeaseView;
use crate::output;
use crate::store::{self, ChosenStore};
use crate::wait_limit::WaitLimit;
use crate::watch;

#[derive(Serialize)]
struct LeaderAnswer<'a> {
    store: String,
    #[serde(flatten)]
    leader: &'a LeaderView,
}

/// One line of `--watch`.
#[derive(Serialize)]
struct LeaderLine {
    event: &'static str,
    seen_at: String,
    #[serde(flatten)]
    leader: LeaderView,
}

/// Prints the leader.
pub(crate) fn leader(args: &Args, leader: &args::Leader) -> Result<ExitCode, Failure> {
    let key = Key::parse(&leader.name)?;
    let store = store::choose(args)?;
    if leader.watch {
        store::block_on(async {
            tokio::select! {
                told = print_changes(&store, &key, leader.json) => told,
                () = watch::reader_exited() => Ok(()),
            }
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let view = store::block_on(async {
        match leader.wait.map(WaitLimit::from_now) {
            Some(wait) if wait.allows_waiting() => wait_for_leader(&store, &key, wait, leader.json).await,
            _ => present_leader(&store, &key, leader.json).await,
        }
    })?;
    if leader.json {
        output::answer_json(&LeaderAnswer { store: store.url(), leader: &view })?;
    } else {
        output::answer(&view.sentence())?;
    }
    Ok(if view.is_led() { ExitCode::SUCCESS } else { ExitCode::from(exit::FREE) })
}

async fn present_leader(store: &ChosenStore, key: &Key, json: bool) -> Result<LeaderView, Failure> {
    let Some(coordinator) = store.connect_to_read().await? else { return Ok(LeaderView::none(key)) };
    let seen = observe(&coordinator, store, key).await?;
    store::warn_if_logbook_failed(&coordinator, json);
    Ok(LeaderView::observed(&seen))
}

/// Waits until there is a leader, or the wait is over.
async fn wait_for_leader(
    store: &ChosenStore,
    key: &Key,
    wait: WaitLimit,
    json: bool,
) -> Result<LeaderView, Failure> {
    let mut trouble = None;
    let waiting = async {
        let coordinator = watch::connect(store, json).await?;
        let mut changes = Changes::new(&coordinator, store, key);
        loop {
            match changes.next().await? {
                LeaderEvent::Leader(seen) => match LeaderView::observed(&seen) {
                    view if view.is_led() => return Ok(view),
                    _ => trouble = None,
                },
                LeaderEvent::Other(WatchEvent::Unavailable { error, .. }) => trouble = Some(error),
                LeaderEvent::Other(_) => trouble = None,
            }
        }
    };
    tokio::select! {
        led = waiting => led,
        _ = wait.over() => match trouble {
            Some(error) => Err(Error::into(error)),
            None => Ok(LeaderView::none(key)),
        },
    }
}

async fn print_changes(store: &ChosenStore, key: &Key, json: bool) -> Result<(), Failure> {
    let coordinator = watch::connect(store, json).await?;
    let mut changes = Changes::new(&coordinator, store, key);
    loop {
        let text = match changes.next().await? {
            LeaderEvent::Leader(seen) => {
                let (leader, seen_at) = (LeaderView::observed(&seen), seen.seen_at.to_string());
                let event = if leader.is_led() { "leader" } else { "no-leader" };
                if json {
                    output::json_line(&LeaderLine { event, seen_at, leader })
                } else {
                    format!("{seen_at}  {}", leader.sentence())
                }
            }
            LeaderEvent::Other(event) => match watch::line_of(&event, json) {
                Some(line) => line,
                None => continue,
            },
        };
        if !output::tell(&text)? {
            return Ok(());
        }
    }
}

/// The present leader first, then every change that is seen, never an older token.
struct Changes<'a> {
    coordinator: &'a Coordinator,
    store: &'a ChosenStore,
    key: &'a Key,
    events: tenure::Watch,
    filter: LeaderFilter,
}

enum LeaderEvent {
    /// An observation that shows another leader than before, or none.
    Leader(Box<Observation>),
    /// The store became unavailable or available, or the record cannot be read.
    Other(WatchEvent),
}

impl<'a> Changes<'a> {
    fn new(coordinator: &'a Coordinator, store: &'a ChosenStore, key: &'a Key) -> Self {
        let events = coordinator.watch(&Prefix::of(key));
        Self { coordinator, store, key, events, filter: LeaderFilter::new() }
    }

    async fn next(&mut self) -> Result<LeaderEvent, Failure> {
        loop {
            match self.events.next().await {
                Some(WatchEvent::Stands(seen)) if seen.key == *self.key => {}
                Some(WatchEvent::Changed(change)) if change.key == *self.key => {}
                // Other leases may have names below this one.
                Some(WatchEvent::Stands(_) | WatchEvent::Changed(_)) => continue,
                Some(WatchEvent::Problem { key, .. }) if key != *self.key => continue,
                Some(event) => return Ok(LeaderEvent::Other(event)),
                None => return Err(Failure::unavailable("the watch ended: try again")),
            }
            // A change names the holder alone. A store that fails now is reported by the watch.
            let seen = match self.coordinator.observe(self.key.as_str()).await {
                Ok(seen) => checked(seen, self.store)?,
                Err(_) => continue,
            };
            if self.filter.saw(seen.record.as_ref(), &seen.standing).is_some() {
                return Ok(LeaderEvent::Leader(Box::new(seen)));
            }
        }
    }
}

/// Reads the lease.
pub(crate) async fn observe(
    coordinator: &Coordinator,
    store: &ChosenStore,
    key: &Key,
) -> Result<Observation, Failure> {
    checked(coordinator.observe(key.as_str()).await?, store)
}

/// Refuses a foreign record and a plain key.
fn checked(seen: Observation, store: &ChosenStore) -> Result<Observation, Failure> {
    if let Standing::Foreign(what) = &seen.standing {
        let sentence = format!("lease {} on {} has no Tenure record: {what}", seen.key, store.url());
        return Err(Failure::new(exit::NOT_OURS, sentence));
    }
    LeaseView::observed(&seen).ensure_lease(&store.url())?;
    Ok(seen)
}
