//! `tenure slots`, and the slots of `tenure run --slots`.

mod acquisition;
mod view;

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use tenure::{Coordinator, Key};

use crate::args::{self, Args};
use crate::exit::Failure;
use crate::output::{self, plain};
use crate::signals::{self, Blocked};
use crate::store::{self, ChosenStore};
use crate::table;
use crate::wait_limit::WaitLimit;
pub(crate) use acquisition::SlotAcquisition;
use view::{GroupView, HeldSlotView};

/// The answer about one group. The fields and their names are a contract: `docs/reference/command/slots.md`.
#[derive(Serialize)]
struct GroupAnswer {
    store: String,
    #[serde(flatten)]
    view: GroupView,
    /// The number of slots before a resize.
    #[serde(skip_serializing_if = "Option::is_none")]
    former: Option<u16>,
    holders: Vec<HeldSlotView>,
}

#[derive(Serialize)]
struct GroupsAnswer {
    store: String,
    groups: Vec<GroupView>,
}

/// Lists the groups, shows one, or resizes it.
pub(crate) fn slots(args: &Args, slots: &args::Slots) -> Result<ExitCode, Failure> {
    let store = store::choose(args)?;
    let Some(group) = &slots.group else { return all(&store, slots.json) };
    let group = Key::parse(group)?;
    let answer = match slots.resize {
        Some(number) => resized(args, &store, &group, number)?,
        None => store::block_on(async {
            let Some(coordinator) = store.connect_to_read().await? else {
                return Ok(GroupAnswer::new(&store, GroupView::unused(&group)));
            };
            let answer = shown(&store, &coordinator, &group).await?;
            store::warn_if_logbook_failed(&coordinator, slots.json);
            Ok(answer)
        })?,
    };
    if slots.json {
        output::answer_json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let resized = match (answer.former, answer.view.slots) {
        (Some(former), Some(now)) if former == now => {
            format!("{}: has {now} already\n", plain(group.as_str()))
        }
        (Some(former), Some(now)) => format!("{}: resized from {former} to {now}\n", plain(group.as_str())),
        _ => String::new(),
    };
    let rows: Vec<_> = answer.holders.iter().map(HeldSlotView::row).collect();
    let held = if rows.is_empty() { String::new() } else { table::lines(HeldSlotView::HEAD, rows) };
    output::answer(&format!("{resized}{}\n{held}", answer.view.words()))?;
    Ok(ExitCode::SUCCESS)
}

impl GroupAnswer {
    fn new(store: &ChosenStore, view: GroupView) -> Self {
        Self { store: store.url(), view, former: None, holders: Vec::new() }
    }
}

async fn shown(store: &ChosenStore, coordinator: &Coordinator, group: &Key) -> Result<GroupAnswer, Failure> {
    let found = coordinator.slot_group(group.as_str())?;
    let (size, holders) = (found.size().await?, found.holders().await?);
    let holders: Vec<_> = holders.iter().map(|held| HeldSlotView::of(held, size)).collect();
    let view = GroupView { held: Some(holders.len()), slots: size, ..GroupView::unused(group) };
    Ok(GroupAnswer { holders, ..GroupAnswer::new(store, view) })
}

/// Resizes the group, unless a signal arrives before.
fn resized(args: &Args, store: &ChosenStore, group: &Key, number: u32) -> Result<GroupAnswer, Failure> {
    if !store.is_there()? {
        let url = store.url();
        return Err(Failure::usage(format!(
            "group {group} has no size, because there is no store at {url}: check --store"
        )));
    }
    // Before the first thread, which inherits the mask.
    let blocked = Blocked::now().map_err(signals::no_signals)?;
    store::block_on(async {
        let signals = blocked.take().map_err(signals::no_signals)?;
        let wait = WaitLimit::from_now(Some(Duration::ZERO));
        let coordinator = store::connect(store::coordinator(args), store.open()?, &wait, &signals).await?;
        let resize = async {
            let former = coordinator.slot_group(group.as_str())?.resize(number).await?;
            Ok(GroupAnswer { former: Some(former), ..shown(store, &coordinator, group).await? })
        };
        tokio::select! {
            answer = resize => answer,
            signal = signals.ended() => Err(Failure::silent(128 + signal as u8)),
        }
    })
}

/// Lists the groups. Those with an unreadable part are listed too, and fail the command afterwards.
fn all(store: &ChosenStore, json: bool) -> Result<ExitCode, Failure> {
    let (groups, mut failures) = store::block_on(async {
        let (mut views, mut failures) = (Vec::new(), Vec::new());
        let Some(coordinator) = store.connect_to_read().await? else { return Ok((views, failures)) };
        for group in coordinator.slot_groups().await? {
            let found = coordinator.slot_group(group.as_str())?;
            let (size, holders) = (found.size().await, found.holders().await);
            let held = holders.as_ref().ok().map(Vec::len);
            let unreadable = size.is_err() || holders.is_err();
            views.push(GroupView {
                group: group.to_string(),
                slots: *size.as_ref().unwrap_or(&None),
                held,
                unreadable,
            });
            failures.extend(size.err().or(holders.err()).map(Failure::from));
        }
        store::warn_if_logbook_failed(&coordinator, json);
        Ok((views, failures))
    })?;
    if json {
        output::answer_json(&GroupsAnswer { store: store.url(), groups })?;
    } else if groups.is_empty() {
        output::say(&format!("no groups of slots in {}", store.url()));
    } else {
        output::answer(&table::lines(GroupView::HEAD, groups.iter().map(GroupView::row).collect()))?;
    }
    let Some(last) = failures.pop() else { return Ok(ExitCode::SUCCESS) };
    for failure in failures {
        failure.report(json);
    }
    Err(last)
}
