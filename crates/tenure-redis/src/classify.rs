//! The meaning of each error of a server.
//!
//! A script changes something by its `HSET` alone, which is all or nothing, and nothing after it can fail. So an error
//! that the server raises *instead of* a command proves that nothing was changed, also if it comes from inside the
//! script. The script of a fence also runs the commands of a writer. It raises no error of theirs: those are in its answer.
//! The table names the errors of which that is known; every other error has an unknown outcome.

use redis::{RedisError, ServerError};
use tenure_store::{Reason, StoreError};

use crate::words;

/// Effect of a server's error on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The call certainly had no effect.
    Refused(Reason),
    /// The call may have had an effect.
    Unknown,
}

/// Errors that prove that nothing was changed.
///
/// | code | cause | action |
/// | --- | --- | --- |
/// | `READONLY` | the server is a replica now | reconnect |
/// | `MISCONF` | it cannot save its data: disk full | wait |
/// | `OOM` | its memory is full | wait |
/// | `LOADING` | it is loading its data after a start | wait |
/// | `BUSY` | another script runs too long | wait |
/// | `NOREPLICAS` | fewer replicas than `min-replicas-to-write` | wait |
/// | `MOVED`, `ASK`, `TRYAGAIN` | the slot is on another node | wait, or follow it |
/// | `CLUSTERDOWN`, `MASTERDOWN` | no primary server serves the slot | wait |
/// | `NOAUTH`, `WRONGPASS`, `NOPERM` | credentials or permissions | fix them |
/// | `WRONGTYPE` | another program uses the name | inspect it |
/// | `CROSSSLOT` | the keys of a fenced write are in several slots | give them one hash tag |
/// | `NOSCRIPT` | the script was flushed between two commands | try again |
const WITHOUT_EFFECT: [(&str, Reason); 17] = [
    ("READONLY", Reason::Unreachable),
    ("MISCONF", Reason::Unreachable),
    ("OOM", Reason::Unreachable),
    ("LOADING", Reason::Unreachable),
    ("BUSY", Reason::Unreachable),
    ("NOREPLICAS", Reason::Unreachable),
    ("MOVED", Reason::Unreachable),
    ("ASK", Reason::Unreachable),
    ("TRYAGAIN", Reason::Unreachable),
    ("CLUSTERDOWN", Reason::Unreachable),
    ("MASTERDOWN", Reason::Unreachable),
    ("NOSCRIPT", Reason::Unreachable),
    ("NOAUTH", Reason::Denied),
    ("WRONGPASS", Reason::Denied),
    ("NOPERM", Reason::Denied),
    ("WRONGTYPE", Reason::Damaged),
    ("CROSSSLOT", Reason::Invalid),
];

/// Beginnings of the details of an error that a script raises instead of a command that the user may not run: Redis 7.0,
/// and all newer servers. `NOPERM` is the error only outside of scripts.
const IS_NOT_ALLOWED_IN_A_SCRIPT: [&str; 2] =
    ["The user executing the script can't", "ACL failure in script"];

/// The code of an error, also if a script has raised it.
pub(crate) fn code(error: &ServerError) -> &str {
    code_and_details(error).0
}

/// The code and the rest of an error. Redis 6 wraps an error that a script raises into another one, with the code `ERR`.
fn code_and_details(error: &ServerError) -> (&str, &str) {
    let details = error.details().unwrap_or_default();
    let wrapped = if error.code() == "ERR" { wrapped(details) } else { None };
    wrapped.unwrap_or((error.code(), details))
}

/// The code and the rest of the error inside: `Error running script (call to f_6b1b…): @user_script:18: @user_script: 18:
/// -READONLY You can't write against a read only replica.` The place is there once or twice.
fn wrapped(details: &str) -> Option<(&str, &str)> {
    let (_, mut inside) = details.strip_prefix("Error running script (call to ")?.split_once("): ")?;
    while let Some(place) = inside.strip_prefix("@user_script:") {
        (_, inside) = place.split_once(": ")?;
    }
    let inside = inside.strip_prefix('-').unwrap_or(inside);
    let (first, rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let is_code = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase());
    Some(if is_code { (first, rest) } else { ("ERR", inside) })
}

/// The meaning of a server's error.
pub(crate) fn meaning(error: &ServerError) -> Meaning {
    let (code, details) = code_and_details(error);
    meaning_of(code, details)
}

/// The reason why a command of a fenced write failed, from the text of its error in a script. The command had no effect.
pub(crate) fn reason_of_command(error: &str) -> Reason {
    let (code, details) = error.split_once(' ').unwrap_or((error, ""));
    match meaning_of(code, details) {
        // Another value than the command expects is there.
        Meaning::Refused(Reason::Damaged) | Meaning::Unknown => Reason::Invalid,
        Meaning::Refused(reason) => reason,
    }
}

fn meaning_of(code: &str, details: &str) -> Meaning {
    let known = WITHOUT_EFFECT.iter().find(|(known, _)| *known == code);
    if let Some((_, reason)) = known {
        return Meaning::Refused(*reason);
    }
    if IS_NOT_ALLOWED_IN_A_SCRIPT.iter().any(|start| details.starts_with(start)) {
        return Meaning::Refused(Reason::Denied);
    }
    if code == "ERR" && details.starts_with("unknown command") {
        // A hosted server without scripts, or one whose commands are renamed.
        return Meaning::Refused(Reason::Unsupported);
    }
    Meaning::Unknown
}

/// True if the server is no longer the one of the handshake, so that the next call must connect again.
pub(crate) fn outdates_the_connection(error: &ServerError) -> bool {
    is_of_another_server(code(error))
}

/// The same for the error of a command inside a script, which is only a text there.
pub(crate) fn outdates_the_connection_inside(error: &str) -> bool {
    is_of_another_server(error.split(' ').next().unwrap_or_default())
}

fn is_of_another_server(code: &str) -> bool {
    matches!(code, "READONLY" | "NOAUTH" | "MASTERDOWN" | "CLUSTERDOWN")
}

/// The error of a call that the server answered with an error.
pub(crate) fn answered(error: &ServerError) -> StoreError {
    match meaning(error) {
        Meaning::Refused(reason) => StoreError::refused(reason, words::of(error)),
        Meaning::Unknown => StoreError::unknown(words::of(error)),
    }
}

/// The error of a call that was sent, and not answered.
pub(crate) fn unanswered(error: &RedisError) -> StoreError {
    StoreError::unknown(format!("the call was sent and not answered: {error}"))
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn meaning_of(line: &str) -> Meaning {
        match parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() {
            Value::ServerError(error) => meaning(&error),
            other => panic!("{other:?}"),
        }
    }

    /// The lines are those of real servers.
    #[test]
    fn errors_that_prove_that_nothing_happened_are_refused() {
        for (line, reason) in [
            (
                "READONLY You can't write against a read only replica. script: ab, on @user_script:18.",
                Reason::Unreachable,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to.",
                Reason::Unreachable,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'. script: ab, on @user_script:18.",
                Reason::Unreachable,
            ),
            ("LOADING Redis is loading the dataset in memory", Reason::Unreachable),
            (
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
                Reason::Unreachable,
            ),
            ("NOREPLICAS Not enough good replicas to write.", Reason::Unreachable),
            ("MOVED 3999 127.0.0.1:6381", Reason::Unreachable),
            ("ASK 3999 127.0.0.1:6381", Reason::Unreachable),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Reason::Unreachable),
            ("CLUSTERDOWN The cluster is down", Reason::Unreachable),
            (
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                Reason::Unreachable,
            ),
            ("NOSCRIPT No matching script. Please use EVAL.", Reason::Unreachable),
            ("NOAUTH Authentication required.", Reason::Denied),
            ("WRONGPASS invalid username-password pair or user is disabled.", Reason::Denied),
            ("NOPERM User x has no permissions to run the 'evalsha' command", Reason::Denied),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Reason::Damaged),
            ("CROSSSLOT Keys in request don't hash to the same slot", Reason::Invalid),
            ("ERR unknown command 'EVALSHA', with args beginning with: 'ab' '1'", Reason::Unsupported),
        ] {
            assert_eq!(meaning_of(line), Meaning::Refused(reason), "{line}");
        }
    }

    /// The lines have the form of Redis 6, which was not tested.
    #[test]
    fn an_error_inside_the_error_of_a_script_counts() {
        let place = "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:18: ";
        for (inside, reason) in [
            ("@user_script: 18: -READONLY You can't write against a read only replica.", Reason::Unreachable),
            ("@user_script: 18: -MISCONF Redis is configured to save RDB snapshots.", Reason::Unreachable),
            (
                "@user_script: 18: -OOM command not allowed when used memory > 'maxmemory'.",
                Reason::Unreachable,
            ),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Reason::Damaged),
            (
                "@user_script: 18: The user executing the script can't run this command or subcommand",
                Reason::Denied,
            ),
        ] {
            assert_eq!(meaning_of(&format!("{place}{inside}")), Meaning::Refused(reason), "{inside}");
        }
        for inside in ["Script killed by user with SCRIPT KILL...", "attempt to index a nil value", ""] {
            assert_eq!(meaning_of(&format!("{place}{inside}")), Meaning::Unknown, "{inside}");
        }
        let line = format!("-{place}@user_script: 18: -READONLY You can't write.\r\n");
        let Ok(Value::ServerError(error)) = parse_redis_value(line.as_bytes()) else { panic!("{line}") };
        assert!(outdates_the_connection(&error));
    }

    #[test]
    fn every_other_error_leaves_the_outcome_unknown() {
        for line in [
            "ERR Error running script: Script killed by user with SCRIPT KILL.",
            "ERR internal error",
            "UNKILLABLE Sorry the script already executed write commands against the dataset.",
            "NOTALISTEDCODE something new",
        ] {
            assert_eq!(meaning_of(line), Meaning::Unknown, "{line}");
        }
    }
}
