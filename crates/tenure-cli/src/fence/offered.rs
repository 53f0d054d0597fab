use tenure::fence::FencingToken;
use tenure::{Key, Token};

use super::granted::must_not_be_above_the_latest_grant;
use crate::args::{Args, FenceToken};
use crate::exit::Failure;

/// The token of this call: from the options, or from the environment that `tenure run` sets.
///
/// Both parts come from one place: a token says nothing about another lease. A token that was typed may be wrong, so it is
/// compared with the latest grant.
pub(super) fn offered(args: &Args, typed: &FenceToken) -> Result<FencingToken, Failure> {
    if let (Some(name), Some(token)) = (&typed.name, &typed.token) {
        let typed = fencing_token(name, token, typed.slot)?;
        // A script may pass its environment on as options.
        if !granted_token().is_ok_and(|granted| granted.as_ref() == Some(&typed)) {
            must_not_be_above_the_latest_grant(args, &typed)?;
        }
        return Ok(typed);
    }
    granted_token()?.ok_or_else(|| {
        Failure::usage(
            "there is no token: TENURE_NAME and TENURE_TOKEN are not set. Run this under tenure run, or name the lease and its \
             token with --name and --token",
        )
    })
}

/// The token in the environment; `None` if there is none.
fn granted_token() -> Result<Option<FencingToken>, Failure> {
    FencingToken::from_env().map_err(|error| Failure::usage(error.to_string()))
}

fn fencing_token(name: &str, token: &str, slot: Option<u16>) -> Result<FencingToken, Failure> {
    let key = Key::parse(name)?;
    let key = slot.map_or(Ok(key.clone()), |index| Key::group_slot(&key, index))?;
    let token: Token =
        token.parse().map_err(|error: tenure::TokenError| Failure::usage(error.to_string()))?;
    FencingToken::new(key, token).map_err(|error| Failure::usage(error.to_string()))
}
