//! Messages for servers that cannot be used, and what to do about it.

use std::io;
use std::time::Duration;

use redis::{RedisError, ServerError};
use tenure_store::Reason;

use crate::classify;
use crate::connection::ServerInfo;
use crate::names::Names;
use crate::open::{Address, OpenError, Settings};

/// A server's error, as the end of a sentence.
pub(crate) fn of(error: &ServerError) -> String {
    let cause = match classify::code(error) {
        "NOREPLICAS" => ": it has fewer replicas than its setting min-replicas-to-write requires",
        _ => "",
    };
    match error.details() {
        Some(details) => format!("the server answered {} {details}{cause}", error.code()),
        None => format!("the server answered {}{cause}", error.code()),
    }
}

/// True if this user may not run the command, or if the server does not have it: an operator can rename commands.
pub(crate) fn is_not_allowed(error: &ServerError) -> bool {
    let is_unknown = error.details().is_some_and(|details| details.starts_with("unknown command"));
    error.code() == "NOPERM" || (error.code() == "ERR" && is_unknown)
}

/// The error of a server that did not answer in time.
pub(crate) fn of_silence(limit: Duration, address: &Address, settings: &Settings) -> OpenError {
    let seconds = limit.as_secs();
    let advice = if settings.tls { WITHOUT_TLS } else { "" };
    unreachable(format!("{address} did not answer the handshake within {seconds} s{advice}"))
}

/// The error of a server with which no encryption could be agreed.
pub(crate) fn of_no_tls(error: &io::Error, address: &Address) -> OpenError {
    let is_tls = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>())
        .is_some_and(|error| !matches!(error, rustls::Error::InvalidMessage(_)));
    let advice = if is_tls { "" } else { WITHOUT_TLS };
    unreachable(format!("cannot connect to {address}: {error}{advice}"))
}

/// The error of a server that closed the connection, or whose answer is not one of Redis.
pub(crate) fn of_no_handshake(error: &RedisError, address: &Address, settings: &Settings) -> OpenError {
    let is_plain_port = matches!(address, Address::Tcp(..)) && !settings.tls;
    let advice = if is_plain_port { WITH_TLS } else { "" };
    unreachable(format!("{address} did not answer the handshake: {error}{advice}"))
}

/// The error of a server that does not wait for replicas.
pub(crate) fn of_refusal_to_wait(error: &ServerError, address: &Address, settings: &Settings) -> OpenError {
    let on_disk = settings.confirmation.is_some_and(|confirmation| confirmation.on_disk);
    let (name, option) = if on_disk { ("WAITAOF", "wait-disk") } else { ("WAIT", "wait") };
    if error.code() == "NOPERM" {
        return of_handshake(error, address, settings);
    }
    let versions = if on_disk { ". Redis 7.2 and newer have it, and Valkey" } else { "" };
    let sentence =
        format!("{address} cannot do what {option}= in the URL requires ({name}): {}{versions}", of(error));
    OpenError::new(Reason::Unsupported, sentence)
}

fn unreachable(sentence: String) -> OpenError {
    OpenError::new(Reason::Unreachable, sentence)
}

/// The reason why a handshake failed.
pub(crate) fn of_handshake(error: &ServerError, address: &Address, settings: &Settings) -> OpenError {
    let details = error.details().unwrap_or_default();
    let who = settings.user.as_deref().unwrap_or("default");
    let (reason, advice) = match error.code() {
        "WRONGPASS" => {
            (Reason::Denied, format!("the password of the user {who:?} is wrong, or the user is disabled"))
        }
        "NOAUTH" => (
            Reason::Denied,
            "it requires a password: put it into REDISCLI_AUTH, or into a file that password-file= names"
                .to_owned(),
        ),
        "ERR" if details.contains("without any password configured") => (
            Reason::Denied,
            "it has no password, but REDISCLI_AUTH or a password file names one: take it out".to_owned(),
        ),
        "ERR" if details.contains("DB index") || details.contains("SELECT is not allowed") => {
            (Reason::Missing, format!("it has no database {}: correct db= in the URL", settings.database))
        }
        "NOPERM" => {
            (Reason::Denied, format!("the user {who:?} lacks a permission ({details}): see the ACL rules"))
        }
        "WRONGTYPE" => (
            Reason::Damaged,
            format!(
                "the Redis key {:?} is not the restart record of Tenure: inspect it with TYPE, or use another prefix",
                Names::with(&settings.prefix).restart()
            ),
        ),
        "LOADING" => (Reason::Unreachable, "it is loading its data".to_owned()),
        "MASTERDOWN" => {
            (Reason::Unreachable, "it is a replica without a connection to its primary server".to_owned())
        }
        _ => (Reason::Unreachable, of(error)),
    };
    OpenError::new(reason, format!("{address} cannot be used: {advice}"))
}

/// Refuses a server that may lose leases in a way that the caller has not accepted.
pub(crate) fn check(server: &ServerInfo, address: &Address, settings: &Settings) -> Result<(), OpenError> {
    let accepted = settings.accepted;
    let refused = |what: String| Err(OpenError::new(Reason::Unsupported, format!("{address} {what}")));
    if server.mode == "sentinel" {
        return refused("is a sentinel: write redis+sentinel://host/mymaster?accept=failover".to_owned());
    }
    if !server.unknown.is_empty() && !accepted.unknown_settings {
        return refused(format!(
            "does not show its settings ({}) to this user, so it may evict records or have replicas: allow INFO, or \
             accept that with accept=unknown-settings in the URL",
            server.unknown.join(", ")
        ));
    }
    if server.run.is_empty() && settings.has_quarantine() {
        return refused(
            "does not show its run id to this user, so a restart cannot be noticed: allow INFO, or accept lost leases with \
             accept=restart in the URL"
                .to_owned(),
        );
    }
    if server.is_replica {
        let reason = if accepted.failover { Reason::Unreachable } else { Reason::Unsupported };
        return Err(OpenError::new(
            reason,
            format!("{address} is a replica, which accepts no writes: connect to its primary server"),
        ));
    }
    if let Some(sign) = &server.active_active {
        return refused(format!(
            "is active-active ({sign}): other servers accept writes of the same data, so two may hold one lease at any \
             time. Use another store"
        ));
    }
    if server.mode == "cluster" && !accepted.failover {
        return refused(
            "is part of a cluster, where a failover may lose the latest writes unseen, and with them leases: accept that \
             with accept=failover in the URL, and use the fence"
                .to_owned(),
        );
    }
    if server.replicas > 0 && !accepted.failover {
        return refused(format!(
            "has {}, and a failover may lose the latest writes unseen, and with them leases: accept that with \
             accept=failover in the URL, and use the fence",
            replicas(server.replicas)
        ));
    }
    if let Some(policy) = server.evicts.as_ref().filter(|_| !accepted.eviction) {
        return refused(format!(
            "evicts keys when its memory is full (maxmemory-policy {policy}), and may evict the record of a held lease: set \
             maxmemory-policy noeviction, or accept that with accept=eviction in the URL"
        ));
    }
    Ok(())
}

/// Risks of a server that is used: those that were accepted, and those of its settings.
pub(crate) fn risks(server: &ServerInfo, settings: &Settings) -> Vec<String> {
    let mut risks = Vec::new();
    let accepted = settings.accepted;
    let is_copied = server.replicas > 0 || server.mode == "cluster";
    if is_copied {
        let what = match server.mode.as_str() {
            "cluster" => "it is part of a cluster".to_owned(),
            _ => format!("it has {}", replicas(server.replicas)),
        };
        risks.push(format!(
            "{what}: a failover may lose acknowledged writes, and then two may hold one lease"
        ));
    }
    match server.min_replicas {
        Some(0) if is_copied => risks.push(
            "min-replicas-to-write is 0: a server that has lost contact with its replicas continues to grant leases, and \
             a failover loses them"
                .to_owned(),
        ),
        Some(number @ 1..) => risks.push(format!(
            "min-replicas-to-write is {number}: with fewer replicas, the server refuses every write, and holders lose \
             their leases"
        )),
        _ => {}
    }
    if let Some(policy) = server.evicts.as_ref().filter(|_| accepted.eviction) {
        risks.push(format!("maxmemory-policy is {policy}: it may evict the record of a held lease"));
    }
    if !server.unknown.is_empty() {
        risks.push(
            "it does not show its settings to this user: it may evict records, have replicas, or be active-active"
                .to_owned(),
        );
    } else if server.min_replicas.is_none() {
        risks.push(
            "it does not show its settings by CONFIG GET: whether it is active-active is known from INFO alone".to_owned(),
        );
    }
    if accepted.restart {
        risks.push(
            "accept=restart: a restart may lose acknowledged writes, and then two may hold one lease"
                .to_owned(),
        );
    }
    risks
}

fn replicas(number: u32) -> String {
    if number == 1 { "1 replica".to_owned() } else { format!("{number} replicas") }
}

const WITHOUT_TLS: &str = ". If its port is not encrypted, write redis:// instead of rediss://";
const WITH_TLS: &str = ". If its port is encrypted, write rediss:// instead of redis://";

/// Refuses a participant whose quarantine differs from that of the others.
pub(crate) fn check_quarantine(server: &ServerInfo, settings: &Settings) -> Result<(), OpenError> {
    let own = settings.quarantine.as_millis().to_string();
    match server.restart.get("quarantine") {
        Some(others) if *others != own => Err(OpenError::new(
            Reason::Unsupported,
            format!(
                "the other participants on this server use quarantine={others}ms, and this one quarantine={own}ms: use the \
                 same value for all; to change it, stop all participants and delete the Redis key {:?}",
                Names::with(&settings.prefix).restart()
            ),
        )),
        _ => Ok(()),
    }
}
