//! The latest grant of a lease whose token was typed.

use std::sync::Arc;

use tenure::Token;
use tenure::fence::FencingToken;
use tenure::record::{Nonce, Record};

use crate::args::Args;
use crate::exit::{self, Failure};
use crate::store::{self, ChosenStore};

/// Refuses a token that is greater than that of the latest grant, if the store of the command knows the lease. A target that
/// has admitted such a token would refuse every real holder.
pub(super) fn must_not_be_above_the_latest_grant(args: &Args, token: &FencingToken) -> Result<(), Failure> {
    let (offered, name) = (token.token(), token.name().titled());
    let compared = || {
        let store = store::choose(args)?;
        Ok((store::block_on(latest_grant(&store, token))?, store.url()))
    };
    let (granted, url) = compared().map_err(|failure: Failure| {
        let sentence = format!(
            "token {offered} of {name} cannot be compared with its latest grant: {failure}. Or give the token as TENURE_NAME and \
             TENURE_TOKEN, which are not compared"
        );
        let code = if failure.is(exit::NOT_OURS) { exit::UNAVAILABLE } else { failure.number() };
        Failure::new(code, sentence)
    })?;
    match granted {
        Some(granted) if offered > granted => Err(Failure::usage(format!(
            "token {offered} of {name} was never granted: the latest grant on {url} has token {granted}. Use the token from tenure \
             run or acquire, or name the store of the lease with --store"
        ))),
        _ => Ok(()),
    }
}

/// The token of the latest grant; `None` if this store does not know it.
async fn latest_grant(store: &ChosenStore, token: &FencingToken) -> Result<Option<Token>, Failure> {
    let Some(coordinator) = store.connect_to_read().await? else { return Ok(None) };
    let record = match (token.name().group(), token.name().slot_index()) {
        (Some(group), Some(index)) => coordinator.slot_group(group)?.record(index).await?,
        _ => coordinator.record(token.name()).await?,
    };
    let was_granted = |record: &Arc<Record>| !record.is_key() && record.term != Nonce::ZERO;
    Ok(record.filter(was_granted).map(|record| record.token))
}
