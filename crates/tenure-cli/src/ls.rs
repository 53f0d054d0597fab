//! `tenure ls`.

use std::process::ExitCode;

use serde::Serialize;
use tenure::{ErrorKind, Observations, Prefix};

use crate::args::{Args, Ls};
use crate::exit::Failure;
use crate::lease_view::LeaseView;
use crate::output;
use crate::store::{self, ChosenStore};
use crate::table;

#[derive(Serialize)]
struct LsAnswer<'a> {
    store: String,
    store_from: String,
    leases: &'a [LeaseView],
}

/// Lists the leases. Unreadable ones are listed too, and fail the command afterwards.
pub(crate) fn ls(args: &Args, ls: &Ls) -> Result<ExitCode, Failure> {
    let prefix = Prefix::parse(&ls.prefix)?;
    let store = store::choose(args)?;
    let mut unread = None;
    let mut leases = Vec::new();
    let observations = store::block_on(look(&store, &prefix, ls.json))?;
    let missing = if observations.is_some() { "" } else { store::NOT_THERE };
    for (key, seen) in observations.unwrap_or_default() {
        leases.push(match &seen {
            Ok(seen) => LeaseView::observed(seen),
            Err(error) => LeaseView::unreadable(&key, error),
        });
        // A foreign value is listed as such; that is all there is to say.
        unread = unread.or(seen.err().filter(|error| error.kind() != ErrorKind::Corrupt));
    }
    if ls.json {
        output::answer_json(&LsAnswer { store: store.url(), store_from: store.origin(), leases: &leases })?;
    } else if leases.is_empty() {
        output::say(&match ls.prefix.as_str() {
            "" => format!("no leases in {}{missing}", store.url_and_origin()),
            _ => format!("no leases under {prefix} in {}{missing}", store.url_and_origin()),
        });
    } else {
        let rows = leases.iter().map(LeaseView::row).collect();
        // The store is not part of the table: a script reads one lease per line.
        if output::tell(&table::lines(LeaseView::HEAD, rows))? {
            output::say(&format!("store: {}", store.url_and_origin()));
        }
    }
    unread.map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

/// The leases; `None` if the store does not exist.
async fn look(store: &ChosenStore, prefix: &Prefix, json: bool) -> Result<Option<Observations>, Failure> {
    let Some(coordinator) = store.connect_to_read().await? else { return Ok(None) };
    let seen = coordinator.observe_all(prefix).await?;
    store::warn_if_logbook_failed(&coordinator, json);
    Ok(Some(seen))
}
