use bytes::Bytes;

use super::writer::Writer;
use super::{FORMAT, Foreign, NUMBER_MAX, RECORD_MAX, check};
use crate::record::{End, Nonce, Past, Record, State, TermProcess, Witness};
use crate::{Holder, WallTime};

/// Encodes a record: always the same text for the same record.
///
/// A sequence above the largest exact JSON number is written as that number, and a time after the end of the calendar
/// as that end.
///
/// # Panics
///
/// If [`try_encode`] fails. It never fails on a decoded record to which only checked texts were added.
pub fn encode(record: &Record) -> Bytes {
    try_encode(record).unwrap_or_else(|foreign| panic!("this record could not be read back: {foreign}"))
}

/// Encodes a record as [`encode`] does. Fails if it breaks a rule of [`check`]: Tenure must not write a record that
/// could not be read back.
pub fn try_encode(record: &Record) -> Result<Bytes, Foreign> {
    check(record)?;
    let bytes = Writer::object(|out| write_record(out, record));
    // The limits of the fields keep every record within this limit.
    if bytes.len() > RECORD_MAX {
        return Err(Foreign::TooLarge { bytes: bytes.len() });
    }
    Ok(bytes.into())
}

/// Writes the fields in their order, which is part of the format.
fn write_record(out: &mut Writer, record: &Record) {
    out.number("tenure", FORMAT);
    if let Some(feature) = record.kind.feature() {
        out.names("crit", &[feature]);
    }
    write_state(out, &record.state);
    out.plain("kept_by", "self");
    if record.term != Nonce::ZERO {
        write_nonce(out, "term", record.term);
    }
    out.number("token", record.token.get());
    if let Some(ttl) = record.ttl {
        out.number("ttl_ms", ttl.as_millis());
    }
    write_nonce(out, "nonce", record.nonce);
    out.number("sequence", record.sequence.min(NUMBER_MAX));
    if let Some(witness) = &record.witness {
        out.nested("witness", |out| write_witness(out, witness));
    }
    if let Some(hash) = &record.secret_hash {
        out.hex("secret_sha256", hash);
    }
    if let Some(holder) = &record.holder {
        out.nested("holder", |out| write_holder(out, holder));
    }
    if !record.value.is_empty() {
        out.text("value", &record.value);
    }
    if !record.history.is_empty() {
        out.list("history", &record.history, write_past);
    }
    if record.granted_at != WallTime::default() {
        out.time("granted_at", record.granted_at);
    }
    out.time("written_at", record.written_at);
    if let Some(unstoppable) = &record.unstoppable {
        // At the position where a program that does not know the field would write it.
        out.nested("unstoppable", |out| {
            write_nonce(out, "term", unstoppable.term);
            out.text("because", &unstoppable.because);
        });
    }
    if let Some(last) = &record.last_success {
        out.nested("last_success", |out| {
            out.number("token", last.token.get());
            out.number("began_us", last.began.as_micros());
        });
    }
    if let Some(process) = &record.process {
        out.nested("process", |out| write_process(out, process));
    }
    for (name, json) in &*record.unknown {
        out.verbatim(name, json);
    }
}

fn write_state(out: &mut Writer, state: &State) {
    match state {
        State::Vacant => out.plain("state", "vacant"),
        State::Held => out.plain("state", "held"),
        State::Reserved(successor) => {
            out.plain("state", "reserved");
            out.nested("reserved", |out| out.text("for", successor));
        }
        State::Revoked(revocation) => {
            out.plain("state", "revoked");
            out.nested("revoked", |out| {
                out.text("by", &revocation.by);
                out.text("because", &revocation.because);
                write_nonce(out, "nonce", revocation.nonce);
            });
        }
        State::Closed(closure) => {
            out.plain("state", "closed");
            out.nested("closed", |out| {
                out.text("by", &closure.by);
                out.text("because", &closure.because);
            });
        }
    }
}

fn write_nonce(out: &mut Writer, name: &str, nonce: Nonce) {
    out.hex(name, &nonce.to_bits().to_be_bytes());
}

fn write_witness(out: &mut Writer, witness: &Witness) {
    out.plain("name", &witness.name);
    // As a text: an inode has 64 bits, and a JSON number keeps only 53 of them in many languages.
    out.plain("inode", witness.inode);
    if let Some(boot) = &witness.boot {
        out.plain("boot", boot);
    }
}

fn write_holder(out: &mut Writer, holder: &Holder) {
    out.text("id", holder.id());
    if !holder.labels().is_empty() {
        out.nested("labels", |out| holder.labels().iter().for_each(|(name, text)| out.text(name, text)));
    }
    if let Some(address) = holder.address() {
        out.text("address", address);
    }
}

fn write_process(out: &mut Writer, process: &TermProcess) {
    write_nonce(out, "term", process.term);
    let info = &process.info;
    if let Some(host) = info.host() {
        out.text("host", host);
    }
    if let Some(pid) = info.pid() {
        out.number("pid", pid.into());
    }
    if let Some(user) = info.user() {
        out.text("user", user);
    }
    if let Some(container) = info.container() {
        out.text("container", container);
    }
    if let Some(command) = info.command() {
        out.text("command", command);
    }
    if let Some(millis) = process.renews_ms {
        out.number("renews_ms", millis);
    }
}

fn write_past(out: &mut Writer, past: &Past) {
    out.number("token", past.token.get());
    out.text("holder", &past.holder);
    out.time("granted_at", past.granted_at);
    out.time("ended_at", past.ended_at);
    match &past.end {
        End::Released => out.plain("end", "released"),
        End::RanOut => out.plain("end", "ran_out"),
        End::Died => out.plain("end", "died"),
        End::Revoked { by, because } => {
            out.plain("end", "revoked");
            out.text("by", by);
            out.text("because", because);
        }
        End::Other(word) => out.text("end", word),
    }
}
