//! The meaning of each error of a server.
//!
//! A script changes something by its `HSET` alone, which is all or nothing, and nothing after it can fail. So an error
//! that the server raises *instead of* a command proves that nothing was changed, also if it comes from inside the
//! script. The table names the errors of which that is known; every other error has an unknown outcome.

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
/// | `CLUSTERDOWN`, `MASTERDOWN` | no master serves the slot | wait |
/// | `NOAUTH`, `WRONGPASS`, `NOPERM` | credentials or permissions | fix them |
/// | `WRONGTYPE` | another program uses the name | inspect it |
/// | `NOSCRIPT` | the script was flushed between two commands | try again |
const WITHOUT_EFFECT: [(&str, Reason); 16] = [
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
];

/// Beginnings of the details of an error that a script raises instead of a command that the user may not run: Redis 7.0,
/// and all newer servers. `NOPERM` is the error only outside of scripts.
const IS_NOT_ALLOWED_IN_A_SCRIPT: [&str; 2] =
    ["The user executing the script can't", "ACL failure in script"];

/// The meaning of a server's error.
pub(crate) fn meaning(error: &ServerError) -> Meaning {
    let known = WITHOUT_EFFECT.iter().find(|(code, _)| *code == error.code());
    if let Some((_, reason)) = known {
        return Meaning::Refused(*reason);
    }
    let details = error.details().unwrap_or_default();
    if IS_NOT_ALLOWED_IN_A_SCRIPT.iter().any(|start| details.starts_with(start)) {
        return Meaning::Refused(Reason::Denied);
    }
    if error.code() == "ERR" && details.starts_with("unknown command") {
        // A hosted server without scripts, or one whose commands are renamed.
        return Meaning::Refused(Reason::Unsupported);
    }
    Meaning::Unknown
}

/// True if the server is no longer the one of the handshake, so that the next call must connect again.
pub(crate) fn outdates_the_connection(error: &ServerError) -> bool {
    matches!(error.code(), "READONLY" | "NOAUTH" | "MASTERDOWN" | "CLUSTERDOWN")
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
            ("ERR unknown command 'EVALSHA', with args beginning with: 'ab' '1'", Reason::Unsupported),
        ] {
            assert_eq!(meaning_of(line), Meaning::Refused(reason), "{line}");
        }
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
