//! `tenure kv`: plain keys.

mod owner;
mod view;

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use tenure::record::{Record, Ttl};
use tenure::{Creation, ErrorKind, Key, Keys, Prefix, Replacement, Revision};

use crate::args::{Args, KvCas, KvCommand, KvCreate, KvGet, KvLs, KvOwned};
use crate::exit::{self, Failure};
use crate::output::plain;
use crate::signals::{self, Blocked};
use crate::store::ChosenStore;
use crate::wait_limit::WaitLimit;
use crate::{output, store, table};
use owner::OwnerSecret;
use view::KeyView;

/// The answer about one key as JSON. The fields and their names are a contract: `docs/reference/command/kv.md`.
#[derive(Serialize)]
struct KvAnswer<'a> {
    store: String,
    result: &'static str,
    #[serde(flatten)]
    entry: &'a KeyView,
}

#[derive(Serialize)]
struct KvLsAnswer<'a> {
    store: String,
    keys: &'a [KeyView],
}

/// The result of an operation: a word for JSON, and the entry.
struct KvResult {
    word: &'static str,
    entry: KeyView,
}

/// Creates, changes, reads, renews, releases or lists plain keys.
pub(crate) fn kv(args: &Args, command: &KvCommand) -> Result<ExitCode, Failure> {
    match command {
        KvCommand::Create(create) => self::create(args, create),
        KvCommand::Cas(cas) => self::cas(args, cas),
        KvCommand::Get(get) => self::get(args, get),
        KvCommand::Renew(renew) => owned(args, renew, Owned::Renew),
        KvCommand::Release(release) => owned(args, release, Owned::Release),
        KvCommand::Ls(ls) => self::ls(args, ls),
    }
}

fn create(args: &Args, create: &KvCreate) -> Result<ExitCode, Failure> {
    let key = Key::parse(&create.key)?;
    let value = value(&key, &create.value, create.ttl)?;
    let wait = WaitLimit::from_now(Some(create.wait.unwrap_or(Duration::ZERO)));
    let store = store::choose(args)?;
    let result = change(args, create.owner.as_deref(), wait, async |keys| {
        let keys = match wait.remaining().filter(|_| wait.allows_waiting()) {
            Some(limit) => keys.waiting(limit),
            None => keys,
        };
        Ok(match keys.create_if_absent(key.as_str(), &value, create.ttl).await? {
            Creation::Created(entry) => KvResult { word: "created", entry: KeyView::of(&entry, Some(&keys)) },
            Creation::Exists(entry) => KvResult { word: "exists", entry: KeyView::of(&entry, Some(&keys)) },
        })
    })?;
    answer(&store, &result, create.json)
}

fn cas(args: &Args, cas: &KvCas) -> Result<ExitCode, Failure> {
    let key = Key::parse(&cas.key)?;
    let revision: Revision = cas.revision.parse().map_err(Failure::from)?;
    let value = value(&key, &cas.value, cas.ttl)?;
    let store = store::choose(args)?;
    if revision > Revision::ABSENT && !store.is_there()? {
        // A store that does not exist has no entry, and is not created for that.
        return answer(&store, &KvResult { word: "conflict", entry: KeyView::absent(&key) }, cas.json);
    }
    let no_wait = WaitLimit::from_now(Some(Duration::ZERO));
    let result = change(args, cas.owner.as_deref(), no_wait, async |keys| {
        let (word, entry) = match keys.compare_and_set(key.as_str(), revision, &value, cas.ttl).await? {
            Replacement::Created(entry) => ("created", Some(entry)),
            Replacement::Updated(entry) => ("updated", Some(entry)),
            Replacement::Conflict(entry) => ("conflict", entry),
        };
        let entry = entry.map_or_else(|| KeyView::absent(&key), |entry| KeyView::of(&entry, Some(&keys)));
        Ok(KvResult { word, entry })
    })?;
    answer(&store, &result, cas.json)
}

/// Operation that only the owner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    Renew,
    Release,
}

fn owned(args: &Args, of: &KvOwned, operation: Owned) -> Result<ExitCode, Failure> {
    let key = Key::parse(&of.key)?;
    let store = store::choose(args)?;
    if !store.is_there()? {
        let url = store.url();
        let sentence = format!("key {key} has no entry, because there is no store at {url}: check --store");
        return Err(Failure::new(exit::LOST, sentence));
    }
    let no_wait = WaitLimit::from_now(Some(Duration::ZERO));
    let result = change(args, of.owner.as_deref(), no_wait, async |keys| match operation {
        Owned::Renew => {
            let entry = keys.renew(key.as_str()).await?;
            Ok(KvResult { word: "renewed", entry: KeyView::of(&entry, Some(&keys)) })
        }
        Owned::Release => {
            keys.release(key.as_str()).await?;
            Ok(KvResult { word: "released", entry: KeyView::absent(&key) })
        }
    })?;
    answer(&store, &result, of.json)
}

/// Makes a change as this owner, unless a signal arrives before.
fn change(
    args: &Args,
    owner: Option<&str>,
    wait: WaitLimit,
    act: impl AsyncFnOnce(Keys) -> Result<KvResult, Failure>,
) -> Result<KvResult, Failure> {
    let secret = OwnerSecret::find_or_create()?;
    // Before the first thread, which inherits the mask.
    let blocked = Blocked::now().map_err(signals::no_signals)?;
    store::block_on(async {
        let signals = blocked.take().map_err(signals::no_signals)?;
        let coordinator =
            store::connect(store::coordinator(args), store::open(args)?, &wait, &signals).await?;
        let keys = secret.own(coordinator.keys(), owner)?;
        tokio::select! {
            result = act(keys) => result,
            signal = signals.ended() => Err(Failure::silent(128 + signal as u8)),
        }
    })
}

/// Prints the answer to a change.
fn answer(store: &ChosenStore, result: &KvResult, json: bool) -> Result<ExitCode, Failure> {
    let KvResult { word, entry } = result;
    let refused = matches!(*word, "exists" | "conflict");
    if json {
        output::answer_json(&KvAnswer { store: store.url(), result: word, entry })?;
        return Ok(if refused { ExitCode::from(exit::HELD) } else { ExitCode::SUCCESS });
    }
    let name = plain(&entry.key);
    match *word {
        "exists" | "conflict" if entry.revision.is_some() => {
            let next = if *word == "exists" {
                "To replace it, use tenure kv cas with its revision"
            } else {
                "Read it again before the next change"
            };
            let sentence =
                format!("key {name} on {} was not changed: it has {}. {next}", store.url(), entry.words());
            return Err(Failure::new(exit::HELD, sentence));
        }
        "exists" | "conflict" => {
            let sentence = format!(
                "key {name} on {} was not changed: it has no entry. Create one with tenure kv create",
                store.url()
            );
            return Err(Failure::new(exit::HELD, sentence));
        }
        "released" => output::answer(&format!("{name}: released\n"))?,
        // A script uses the revision in its next change.
        word => output::answer(&format!("{name}: {word}, {}\n", entry.words()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn get(args: &Args, get: &KvGet) -> Result<ExitCode, Failure> {
    let key = Key::parse(&get.key)?;
    let store = store::choose(args)?;
    let secret = OwnerSecret::find(get.json);
    let entry = store::block_on(async {
        let Some(coordinator) = store.connect_to_read().await? else { return Ok(None) };
        let keys = coordinator.keys();
        let found = keys.get(key.as_str()).await?;
        store::warn_if_logbook_failed(&coordinator, get.json);
        let owner = secret.map(|secret| secret.own(keys, get.owner.as_deref())).transpose()?;
        Ok(found.map(|entry| KeyView::of(&entry, owner.as_ref())))
    })?;
    if get.json {
        let result = if entry.is_some() { "found" } else { "absent" };
        let absent = KeyView::absent(&key);
        output::answer_json(&KvAnswer {
            store: store.url(),
            result,
            entry: entry.as_ref().unwrap_or(&absent),
        })?;
    } else if let Some(entry) = &entry {
        print_value(entry.value.as_deref().unwrap_or_default())?;
    }
    Ok(if entry.is_some() { ExitCode::SUCCESS } else { ExitCode::from(exit::FREE) })
}

/// Prints a value: byte for byte for a program, and without control characters for a terminal.
fn print_value(value: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let text = if out.is_terminal() { plain(value) } else { value.to_owned() };
    match out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::unavailable(format!("the value could not be written to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Lists the entries. Unreadable ones are listed too, and fail the command afterwards.
fn ls(args: &Args, ls: &KvLs) -> Result<ExitCode, Failure> {
    let prefix = Prefix::parse(&ls.prefix)?;
    let store = store::choose(args)?;
    let secret = OwnerSecret::find(ls.json);
    let (mut unread, mut views) = (None, Vec::new());
    let (found, owner) = store::block_on(async {
        let Some(coordinator) = store.connect_to_read().await? else { return Ok((Vec::new(), None)) };
        let keys = coordinator.keys();
        let found = keys.list(&prefix).await?;
        store::warn_if_logbook_failed(&coordinator, ls.json);
        Ok((found, secret.map(|secret| secret.own(keys, None)).transpose()?))
    })?;
    for (key, entry) in found {
        views.push(match &entry {
            Ok(entry) => KeyView::of(entry, owner.as_ref()),
            Err(error) => KeyView::unreadable(&key, error),
        });
        // A foreign value is listed as such; that is all there is to say.
        unread = unread.or(entry.err().filter(|error| error.kind() != ErrorKind::Corrupt));
    }
    if ls.json {
        output::answer_json(&KvLsAnswer { store: store.url(), keys: &views })?;
    } else if views.is_empty() {
        output::say(&match ls.prefix.as_str() {
            "" => format!("no plain keys in {}", store.url()),
            _ => format!("no plain keys under {prefix} in {}", store.url()),
        });
    } else {
        output::answer(&table::lines(KeyView::HEAD, views.iter().map(KeyView::row).collect()))?;
    }
    unread.map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

/// The value of an argument; `-` means standard input. Finds every mistake before a store is opened, and perhaps created.
fn value(key: &Key, argument: &str, ttl: Option<Duration>) -> Result<String, Failure> {
    ttl.map(Ttl::try_from).transpose()?;
    let value = match argument {
        "-" => standard_input()?,
        value => value.to_owned().into_bytes(),
    };
    // Before the check for UTF-8: a value that is too long may be cut within a character.
    if value.len() > Record::VALUE_MAX {
        let max = Record::VALUE_MAX;
        return Err(Failure::usage(format!("the value of key {key} has more than {max} bytes: shorten it")));
    }
    String::from_utf8(value)
        .map_err(|error| Failure::usage(format!("the value on standard input is not UTF-8: {error}")))
}

/// The value on standard input, up to one byte more than a value may have.
fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(Record::VALUE_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("the value on standard input cannot be read: {error}")))?;
    Ok(bytes)
}
