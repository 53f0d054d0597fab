use std::sync::Arc;

use tenure_store::StoreTime;

use super::field::Field;
use super::foreign::{Foreign, excerpt};
use super::object::Object;
use super::{FORMAT, RECORD_MAX, check};
use crate::record::{
    Closure, End, Kind, LastSuccess, Nonce, Past, Record, Revocation, State, TermProcess, Ttl, Unstoppable,
    Witness,
};
use crate::{Holder, ProcessInfo, Token, WallTime};

/// Reads a record.
///
/// An error means that the bytes must not be overwritten, whatever they are. No input causes a panic.
pub fn decode(bytes: &[u8]) -> Result<Record, Foreign> {
    let mut object = split(bytes)?;
    // From the most general to the most specific: a record of a newer format gets the error about its format, whatever
    // else it has.
    check_format(&mut object)?;
    let kind = read_kind(&mut object)?;
    check_kept_by(&mut object)?;
    let record = read_record(&mut object, kind)?;
    // The counterpart of the check in `try_encode`.
    check(&record)?;
    Ok(record)
}

/// Splits the bytes into the members of an object.
fn split(bytes: &[u8]) -> Result<Object<'_>, Foreign> {
    if bytes.len() > RECORD_MAX {
        return Err(Foreign::TooLarge { bytes: bytes.len() });
    }
    let not_json = |why: &dyn ToString| Foreign::NotJson { why: why.to_string() };
    let text = std::str::from_utf8(bytes).map_err(|error| not_json(&error))?;
    if text.trim_ascii_start().starts_with('{') {
        return Object::parse(text).map_err(|error| not_json(&error));
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Err(Foreign::OtherProgram),
        Err(error) => Err(not_json(&error)),
    }
}

fn check_format(object: &mut Object<'_>) -> Result<(), Foreign> {
    // The name alone proves nothing: other programs also have fields called `tenure`.
    let format = object.take("tenure").filter(Field::is_number).ok_or(Foreign::OtherProgram)?;
    match format.number()? {
        FORMAT => Ok(()),
        0 => Err(format.damaged("is zero")),
        found => Err(Foreign::NewerVersion { found }),
    }
}

/// Reads the features that the record requires: they say of which kind it is. Fails if this version does not have one
/// of them.
fn read_kind(object: &mut Object<'_>) -> Result<Kind, Foreign> {
    const NAMES_SHOWN: usize = 8;
    let Some(crit) = object.take("crit") else { return Ok(Kind::Lease) };
    let names = crit.list(usize::MAX, |name| Ok(name.text()?.into_owned()))?;
    let is_known = |name: &String| Kind::Key.feature() == Some(name);
    let mut unknown: Vec<_> = names.iter().filter(|name| !is_known(name)).map(|name| excerpt(name)).collect();
    unknown.truncate(NAMES_SHOWN);
    match names.len() {
        _ if !unknown.is_empty() => Err(Foreign::UnknownCrit { names: unknown }),
        0 => Ok(Kind::Lease),
        1 => Ok(Kind::Key),
        _ => Err(crit.damaged("has a name twice")),
    }
}

fn check_kept_by(object: &mut Object<'_>) -> Result<(), Foreign> {
    let kept_by = object.need("kept_by")?;
    match kept_by.text().as_deref() {
        Ok("self") => Ok(()),
        _ => Err(Foreign::KeptBySession { found: excerpt(kept_by.text) }),
    }
}

fn read_record(object: &mut Object<'_>, kind: Kind) -> Result<Record, Foreign> {
    Ok(Record {
        kind,
        state: read_state(object)?,
        term: object.take("term").map_or(Ok(Nonce::ZERO), |term| term.nonce())?,
        token: read_token(&object.need("token")?)?,
        ttl: object.take("ttl_ms").map(|ttl| read_ttl(&ttl)).transpose()?,
        nonce: object.need("nonce")?.nonce()?,
        sequence: object.need("sequence")?.number()?,
        witness: object.take("witness").map(|witness| witness.object(read_witness)).transpose()?,
        secret_hash: object.take("secret_sha256").map(|hash| hash.hex()).transpose()?,
        holder: object.take("holder").map(|holder| holder.object(read_holder)).transpose()?,
        value: object.take("value").map_or(Ok("".into()), |value| value.text().map(Arc::from))?,
        history: read_history(object)?,
        granted_at: object.take("granted_at").map_or(Ok(WallTime::default()), |time| time.time())?,
        written_at: object.need("written_at")?.time()?,
        unstoppable: object.take("unstoppable").map(|said| said.object(read_unstoppable)).transpose()?,
        last_success: object.take("last_success").map(|last| last.object(read_last_success)).transpose()?,
        process: object.take("process").map(|process| process.object(read_process)).transpose()?,
        // Last: fields that were not taken by now are unknown.
        unknown: read_unknown(object),
    })
}

fn read_state(object: &mut Object<'_>) -> Result<State, Foreign> {
    let name = object.need("state")?.text()?;
    let mut details = ["reserved", "revoked", "closed"].map(|state| object.take(state));
    if let Some(other) = details.iter().flatten().find(|detail| detail.name != name) {
        return Err(other.damaged(format!("does not belong to the state {:?}", excerpt(&name))));
    }
    let mut detail = || {
        let detail = details.iter_mut().find_map(Option::take);
        detail
            .ok_or_else(|| Foreign::damaged("state", format!("is {name:?} without the object of that name")))
    };
    match &*name {
        "vacant" => Ok(State::Vacant),
        "held" => Ok(State::Held),
        "reserved" => detail()?.object(|object| Ok(State::Reserved(text(object, "for")?))),
        "revoked" => detail()?.object(|object| {
            let (by, because) = (text(object, "by")?, text(object, "because")?);
            Ok(State::Revoked(Arc::new(Revocation { by, because, nonce: object.need("nonce")?.nonce()? })))
        }),
        "closed" => detail()?.object(|object| {
            let (by, because) = (text(object, "by")?, text(object, "because")?);
            Ok(State::Closed(Arc::new(Closure { by, because })))
        }),
        unknown => Err(Foreign::UnknownState { found: excerpt(unknown) }),
    }
}

fn text(object: &mut Object<'_>, name: &'static str) -> Result<Arc<str>, Foreign> {
    Ok(object.need(name)?.text()?.into())
}

fn read_token(field: &Field<'_>) -> Result<Token, Foreign> {
    Token::new(field.number()?).ok_or_else(|| field.damaged(format!("is more than {}", Token::MAX)))
}

fn read_ttl(field: &Field<'_>) -> Result<Ttl, Foreign> {
    let range = || format!("is not from {} to {}", Ttl::MIN.as_millis(), Ttl::MAX.as_millis());
    Ttl::from_millis(field.number()?).ok_or_else(|| field.damaged(range()))
}

fn read_witness(object: &mut Object<'_>) -> Result<Arc<Witness>, Foreign> {
    Ok(Arc::new(Witness {
        name: object.need("name")?.text()?.into_owned(),
        inode: object.need("inode")?.wide_number()?,
        boot: object.take("boot").map(|boot| boot.text()).transpose()?.map(Into::into),
    }))
}

fn read_unstoppable(object: &mut Object<'_>) -> Result<Arc<Unstoppable>, Foreign> {
    Ok(Arc::new(Unstoppable { term: object.need("term")?.nonce()?, because: text(object, "because")? }))
}

fn read_last_success(object: &mut Object<'_>) -> Result<LastSuccess, Foreign> {
    let token = read_token(&object.need("token")?)?;
    Ok(LastSuccess { token, began: StoreTime::from_micros(object.need("began_us")?.number()?) })
}

fn read_process(object: &mut Object<'_>) -> Result<Arc<TermProcess>, Foreign> {
    let term = object.need("term")?.nonce()?;
    let mut info = ProcessInfo::default();
    if let Some(host) = object.take("host") {
        info = read_shown(&host, |text| info.with_host(text), ProcessInfo::host)?;
    }
    if let Some(pid) = object.take("pid") {
        let number = u32::try_from(pid.number()?).map_err(|_| pid.damaged("is not a process id"))?;
        info = info.with_pid(number);
    }
    if let Some(user) = object.take("user") {
        info = read_shown(&user, |text| info.with_user(text), ProcessInfo::user)?;
    }
    if let Some(container) = object.take("container") {
        info = read_shown(&container, |text| info.with_container(text), ProcessInfo::container)?;
    }
    if let Some(command) = object.take("command") {
        info = read_shown(&command, |text| info.with_command_text(text), ProcessInfo::command)?;
    }
    let renews_ms = object.take("renews_ms").map(|millis| millis.number()).transpose()?;
    Ok(Arc::new(TermProcess { term, info: Arc::new(info), renews_ms }))
}

/// Reads a text about a process. It must be one that the setter leaves as it is, or it would not survive a rewrite.
fn read_shown(
    field: &Field<'_>,
    set: impl FnOnce(&str) -> ProcessInfo,
    get: fn(&ProcessInfo) -> Option<&str>,
) -> Result<ProcessInfo, Foreign> {
    let text = field.text()?;
    let info = set(&text);
    if get(&info) == Some(&*text) {
        Ok(info)
    } else {
        Err(field.damaged("is empty, too long, or has control characters"))
    }
}

fn read_holder(object: &mut Object<'_>) -> Result<Arc<Holder>, Foreign> {
    let damaged = |error: crate::HolderError| Foreign::damaged("", format!("is not a holder: {error}"));
    let mut holder = Holder::new(&object.need("id")?.text()?).map_err(damaged)?;
    if let Some(labels) = object.take("labels") {
        let labels = labels.object(|labels| Ok(labels.take_rest()))?;
        for (name, text) in &labels {
            if holder.labels().contains_key(&**name) {
                return Err(Foreign::damaged("labels", format!("has {:?} twice", excerpt(name))));
            }
            holder = holder.label(name, &Field { name: "labels", text }.text()?).map_err(damaged)?;
        }
    }
    match object.take("address") {
        Some(address) => Ok(Arc::new(holder.at(&address.text()?).map_err(damaged)?)),
        None => Ok(Arc::new(holder)),
    }
}

fn read_history(object: &mut Object<'_>) -> Result<Arc<[Past]>, Foreign> {
    match object.take("history") {
        Some(history) => Ok(history.list(Record::HISTORY_MAX, |past| past.object(read_past))?.into()),
        None => Ok(Arc::new([])),
    }
}

fn read_past(object: &mut Object<'_>) -> Result<Past, Foreign> {
    Ok(Past {
        token: read_token(&object.need("token")?)?,
        holder: text(object, "holder")?,
        granted_at: object.need("granted_at")?.time()?,
        ended_at: object.need("ended_at")?.time()?,
        end: read_end(object)?,
    })
}

fn read_end(object: &mut Object<'_>) -> Result<End, Foreign> {
    match &*object.need("end")?.text()? {
        "released" => Ok(End::Released),
        "ran_out" => Ok(End::RanOut),
        "died" => Ok(End::Died),
        "revoked" => Ok(End::Revoked { by: text(object, "by")?, because: text(object, "because")? }),
        // The history is informational, so a word of a later version must not lock this version out of the key.
        word => Ok(End::Other(word.into())),
    }
}

/// Takes the remaining fields: they belong to later versions and must survive a rewrite. A known name among them occurs
/// twice in the record, and the check at the end rejects it.
fn read_unknown(object: &mut Object<'_>) -> Arc<[(String, String)]> {
    object.take_rest().into_iter().map(|(name, text)| (name.into_owned(), text.to_owned())).collect()
}
