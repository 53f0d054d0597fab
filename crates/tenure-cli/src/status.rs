//! `tenure status`.

use std::process::ExitCode;

use serde::Serialize;
use tenure::{Key, Standing};

use crate::args::{Args, Status};
use crate::cost::Cost;
use crate::exit::{self, Failure};
use crate::lease_view::LeaseView;
use crate::output;
use crate::published_process::without_secrets_in;
use crate::store::{self, ChosenStore};
use crate::term_details;

#[derive(Serialize)]
struct StatusAnswer<'a> {
    store: String,
    store_from: String,
    #[serde(flatten)]
    lease: &'a LeaseView,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

/// Prints the holder of a lease.
pub(crate) fn status(args: &Args, status: &Status) -> Result<ExitCode, Failure> {
    let key = Key::parse(&status.name)?;
    let store = store::choose(args)?;
    let seen = store::block_on(look(&store, &key, status.json))?;
    let is_there = seen.is_some();
    let lease = seen.unwrap_or_else(|| LeaseView::absent(&key));
    let cost = if status.cost { Some(Cost::of(lease.ttl(), store.charge()?)?) } else { None };
    if status.json {
        output::answer_json(&StatusAnswer {
            store: store.url(),
            store_from: store.origin(),
            lease: &lease,
            cost,
        })?;
    } else {
        let cost = cost.map(|cost| cost.text()).unwrap_or_default();
        let missing = if is_there { "" } else { store::NOT_THERE };
        let store = term_details::line("store", &format!("{}{missing}", store.url_and_origin()));
        output::answer(&format!("{}{}{store}{cost}", lease.sentence(), lease.details()))?;
    }
    Ok(if lease.free { ExitCode::from(exit::FREE) } else { ExitCode::SUCCESS })
}

/// The lease; `None` if the store does not exist.
async fn look(store: &ChosenStore, key: &Key, json: bool) -> Result<Option<LeaseView>, Failure> {
    let Some(coordinator) = store.connect_to_read().await? else { return Ok(None) };
    let seen = coordinator.observe(key.as_str()).await?;
    store::warn_if_logbook_failed(&coordinator, json);
    if let Standing::Foreign(what) = &seen.standing {
        let sentence = format!("lease {key} on {} has no Tenure record: {what}", store.url());
        return Err(Failure::new(exit::NOT_OURS, sentence));
    }
    let lease = LeaseView::observed(&seen);
    lease.ensure_lease(&store.url())?;
    match seen.record.filter(|_| seen.standing == Standing::RanOut) {
        Some(record) => {
            Ok(Some(lease.outlived_by(&without_secrets_in(coordinator.survivors(&record).await))))
        }
        None => Ok(Some(lease)),
    }
}
