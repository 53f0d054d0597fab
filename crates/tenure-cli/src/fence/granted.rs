//! The latest grant of a lease whose token was typed.

use tenure::fence::FencingToken;
use tenure::{Key, Token};

use crate::args::Args;
use crate::exit::Failure;
use crate::store;

/// Refuses a token that is greater than that of the latest grant, if the store of the command knows the lease. A target that
/// has admitted such a token would refuse every real holder.
pub(super) fn must_not_be_above_the_latest_grant(args: &Args, token: &FencingToken) -> Result<(), Failure> {
    let store = store::choose(args)?;
    let Some(granted) = store::block_on(latest_grant(&store, token))? else { return Ok(()) };
    if token.token() <= granted {
        return Ok(());
    }
    let (offered, name, url) = (token.token(), token.name().titled(), store.url());
    Err(Failure::usage(format!(
        "token {offered} of {name} was never granted: its latest grant on {url} has token {granted}. Use the token that tenure \
         run or acquire gave, or name the store of the lease with --store"
    )))
}

/// The token of the latest grant; `None` if this store does not know it.
async fn latest_grant(store: &store::ChosenStore, token: &FencingToken) -> Result<Option<Token>, Failure> {
    let Some(coordinator) = store.connect_to_read().await? else { return Ok(None) };
    let Some(group) = token.name().group() else {
        return Ok(coordinator.record(token.name()).await?.map(|record| record.token));
    };
    let holders = coordinator.slot_group(&group)?.holders().await?;
    let holds = |index| Key::group_slot(&group, index).is_ok_and(|slot| slot == *token.name());
    Ok(holders.iter().find(|held| holds(held.index)).map(|held| held.record.token))
}
