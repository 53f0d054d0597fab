use tenure::fence::FencingToken;
use tenure::{Key, Token};

use crate::args::FenceToken;
use crate::exit::Failure;
use crate::home;

/// The token of this call: from the options, or from the environment that `tenure run` sets.
///
/// Both parts come from one place: a token says nothing about another lease.
pub(super) fn offered(args: &FenceToken) -> Result<FencingToken, Failure> {
    let (name, token, slot) = match (&args.name, &args.token) {
        (Some(name), Some(token)) => (name.clone(), token.clone(), args.slot.map(|slot| slot.to_string())),
        _ => {
            let (Some(name), Some(token)) = (variable("TENURE_NAME")?, variable("TENURE_TOKEN")?) else {
                return Err(Failure::usage(
                    "there is no token: TENURE_NAME and TENURE_TOKEN are not set. Run this under tenure run, or name the \
                     lease and its token with --name and --token",
                ));
            };
            (name, token, variable("TENURE_SLOT")?)
        }
    };
    let mut key = Key::parse(&name)?;
    if let Some(slot) = slot {
        let index = slot.parse().map_err(|_| {
            Failure::usage(format!(
                "{slot:?} is not the number of a slot: TENURE_SLOT is set by tenure run --slots"
            ))
        })?;
        key = Key::group_slot(&key, index)?;
    }
    let token: Token =
        token.parse().map_err(|error: tenure::TokenError| Failure::usage(error.to_string()))?;
    FencingToken::new(key, token).map_err(|error| Failure::usage(error.to_string()))
}

fn variable(name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = home::variable_value(name) else { return Ok(None) };
    let value =
        value.into_string().map_err(|value| Failure::usage(format!("{name} is not text: {value:?}")))?;
    Ok(Some(value))
}
