use serde_json::value::RawValue;

use super::foreign::{Foreign, excerpt};
use super::{KNOWN, NUMBER_MAX, RENEWS_MAX, UNKNOWN_FIELDS_MAX, UNKNOWN_MAX, WITNESS_TEXT_MAX};
use crate::record::{End, Kind, Nonce, Record, State, Witness};
use crate::{Holder, Token};

/// Checks a record against the rules and limits of version 1: [`encode`](super::encode()) writes no other, and
/// [`decode`](super::decode()) accepts no other.
///
/// Code that puts text of a user into a record calls this first, and reports the error to the user.
pub fn check(record: &Record) -> Result<(), Foreign> {
    match record.kind {
        Kind::Lease => check_state(record)?,
        Kind::Key => check_key(record)?,
    }
    ensure(record.nonce != Nonce::ZERO, "nonce", "is zero")?;
    ensure(record.value.len() <= Record::VALUE_MAX, "value", "has more than 4096 bytes")?;
    if let Some(witness) = &record.witness {
        check_witness(witness)?;
    }
    check_history(record)?;
    if let Some(unstoppable) = &record.unstoppable {
        ensure(unstoppable.term != Nonce::ZERO, "unstoppable.term", "is zero")?;
        check_reason("unstoppable.because", &unstoppable.because)?;
    }
    if let Some(last) = &record.last_success {
        ensure(last.token > Token::ZERO, "last_success.token", "is zero")?;
        ensure(
            last.began.as_micros() <= NUMBER_MAX,
            "last_success.began_us",
            "is beyond the range of numbers",
        )?;
    }
    if let Some(process) = &record.process {
        ensure(process.term != Nonce::ZERO, "process.term", "is zero")?;
        ensure(
            process.renews_ms.is_none_or(|millis| (1..=RENEWS_MAX).contains(&millis)),
            "process.renews_ms",
            "is not from 1 to 86400000",
        )?;
    }
    check_unknown(record)
}

/// Checks the fields that each state of a lease requires or excludes.
fn check_state(record: &Record) -> Result<(), Foreign> {
    match &record.state {
        State::Vacant => check_unheld(record),
        State::Held => check_held(record),
        State::Reserved(successor) => {
            check_name("reserved.for", successor)?;
            // Without a ttl the reservation would have no end.
            ensure(record.ttl.is_some(), "ttl_ms", "is missing")?;
            check_unheld(record)
        }
        State::Revoked(revocation) => {
            check_name("revoked.by", &revocation.by)?;
            check_reason("revoked.because", &revocation.because)?;
            ensure(revocation.nonce != Nonce::ZERO, "revoked.nonce", "is zero")?;
            check_held(record)
        }
        State::Closed(closure) => {
            check_name("closed.by", &closure.by)?;
            check_reason("closed.because", &closure.because)?;
            check_unheld(record)
        }
    }
}

/// Checks a plain key. It has an entry or none, and nothing that only a lease has.
fn check_key(record: &Record) -> Result<(), Foreign> {
    match &record.state {
        State::Vacant => {
            check_unheld(record)?;
            ensure(record.ttl.is_none(), "ttl_ms", "is present although the plain key has no entry")?;
            ensure(record.value.is_empty(), "value", "is present although the plain key has no entry")?;
        }
        State::Held => {
            check_granted(record)?;
            // Without it, no owner could ever renew or release the entry.
            ensure(record.secret_hash.is_some(), "secret_sha256", "is missing")?;
        }
        State::Reserved(_) | State::Revoked(_) | State::Closed(_) => {
            return Err(Foreign::damaged("state", "is one that a plain key cannot have"));
        }
    }
    ensure(record.witness.is_none(), "witness", "is present in a plain key")?;
    ensure(record.history.is_empty(), "history", "is present in a plain key")?;
    ensure(record.unstoppable.is_none(), "unstoppable", "is present in a plain key")?;
    ensure(record.last_success.is_none(), "last_success", "is present in a plain key")?;
    ensure(record.process.is_none(), "process", "is present in a plain key")
}

/// Checks a record under which a process may act: it has a holder, a grant and a ttl.
fn check_held(record: &Record) -> Result<(), Foreign> {
    check_granted(record)?;
    ensure(record.ttl.is_some(), "ttl_ms", "is missing")
}

/// Checks a record with a holder: it was granted.
fn check_granted(record: &Record) -> Result<(), Foreign> {
    ensure(record.holder.is_some(), "holder", "is missing")?;
    ensure(record.term != Nonce::ZERO, "term", "is missing")?;
    ensure(record.token > Token::ZERO, "token", "is zero")
}

/// Checks a record without a holder: nothing remains that lets a process act, or by which a contender judges it.
fn check_unheld(record: &Record) -> Result<(), Foreign> {
    ensure(record.holder.is_none(), "holder", "is present although the key is not held")?;
    ensure(record.witness.is_none(), "witness", "is present although the key is not held")?;
    ensure(record.secret_hash.is_none(), "secret_sha256", "is present although the key is not held")
}

/// Checks the texts of a witness. Its name becomes the name of a file, so it must not be a path to another one.
fn check_witness(witness: &Witness) -> Result<(), Foreign> {
    let plain = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=WITNESS_TEXT_MAX).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('.')
    };
    ensure(plain(&witness.name), "witness.name", "is not a plain name")?;
    ensure(witness.boot.as_deref().is_none_or(plain), "witness.boot", "is not a plain name")
}

fn check_history(record: &Record) -> Result<(), Foreign> {
    ensure(record.history.len() <= Record::HISTORY_MAX, "history", "has more than 8 entries")?;
    for past in &*record.history {
        check_name("history.holder", &past.holder)?;
        match &past.end {
            End::Released | End::RanOut | End::Died => {}
            End::Revoked { by, because } => {
                check_name("history.by", by)?;
                check_reason("history.because", because)?;
            }
            End::Other(word) => check_name("history.end", word)?,
        }
    }
    Ok(())
}

/// Checks the id of a holder, in any field.
fn check_name(field: &str, name: &str) -> Result<(), Foreign> {
    ensure(!name.is_empty(), field, "is empty")?;
    check_reason(field, name)
}

/// Checks a short informational text. Terminals print it, so control characters are forbidden.
fn check_reason(field: &str, reason: &str) -> Result<(), Foreign> {
    ensure(reason.len() <= Holder::TEXT_MAX, field, "has more than 200 bytes")?;
    ensure(!reason.chars().any(char::is_control), field, "has control characters")
}

/// Checks the fields of later versions. They are written back unchanged, so they must be JSON and distinct.
fn check_unknown(record: &Record) -> Result<(), Foreign> {
    let unknown = &*record.unknown;
    ensure(unknown.len() <= UNKNOWN_FIELDS_MAX, "unknown fields", "are more than 64")?;
    let mut bytes = 0;
    for (index, (name, text)) in unknown.iter().enumerate() {
        let field = excerpt(name);
        let known = KNOWN.contains(&name.as_str());
        let twice = unknown[..index].iter().any(|(earlier, _)| earlier == name);
        ensure(!known && !twice, &field, "is there twice")?;
        let json = serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get().len() == text.len());
        ensure(json, &field, "is not JSON")?;
        bytes += written_bytes(name) + text.len();
    }
    ensure(bytes <= UNKNOWN_MAX, "unknown fields", "have more than 8192 bytes")
}

/// Number of bytes that the name of a field takes: with its escapes, the quotes, the colon and a comma.
fn written_bytes(name: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\x08' | b'\t' | b'\n' | b'\x0c' | b'\r' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    name.bytes().map(escaped).sum::<usize>() + 4
}

fn ensure(rule: bool, field: &str, otherwise: &str) -> Result<(), Foreign> {
    if rule { Ok(()) } else { Err(Foreign::damaged(field, otherwise)) }
}

// The messages above contain these numbers.
const _: () = assert!(Record::VALUE_MAX == 4096 && Record::HISTORY_MAX == 8 && Holder::TEXT_MAX == 200);
const _: () = assert!(RENEWS_MAX == 86_400_000);
const _: () = assert!(UNKNOWN_MAX == 8192 && UNKNOWN_FIELDS_MAX == 64);
