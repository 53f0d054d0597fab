//! The store that the command works on.

use std::error::Error as _;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::{
    Coordinator, CoordinatorBuilder, Error, ErrorKind, Handle, Logbook, ProcessInfo, Timing, Verdicts,
};
use tenure_connect::StoreUrl;
use tenure_store::{Reason, Store, StoreError};

use crate::args::Args;
use crate::config::Config;
use crate::exit::{self, Failure};
use crate::prices::Charge;
use crate::progress::ProgressOutput;
use crate::promises::Promises;
use crate::repetition::Repetition;
use crate::signals::Signals;
use crate::store_trouble::say_unavailable;
use crate::wait_limit::WaitLimit;
use crate::{duration, home, output};

/// An open store.
#[derive(Debug)]
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    /// URL for another process, which opens the same store, with the same risks accepted.
    pub(crate) url: String,
}

/// The chosen store.
#[derive(Debug)]
pub(crate) struct ChosenStore {
    url: StoreUrl,
    by: ChosenBy,
    /// True if it is checked even if it passed the safety check recently.
    again: bool,
}

/// The origin of the choice.
#[derive(Debug)]
enum ChosenBy {
    Flag,
    Argument,
    Variable,
    Config(PathBuf),
    Default,
    Handle,
}

impl OpenedStore {
    /// Refuses durations with more writes per key than the store allows.
    pub(crate) fn check_write_rate(&self, timing: &Timing) -> Result<(), Failure> {
        let borne = timing.bearable_for(&self.url, &self.store.guarantees());
        borne.map(|_| ()).map_err(|error| Failure::misconfigured(error.to_string()))
    }
}

/// Opens the chosen store, and creates it if necessary.
pub(crate) fn open(args: &Args) -> Result<OpenedStore, Failure> {
    choose(args)?.open()
}

/// Opens the store that a handle names. A store that the user names takes precedence, and must be the same. A
/// configured store is used if it is the same, for the risks that its URL accepts and the credentials that it names.
pub(crate) fn open_for(args: &Args, handle: &Handle) -> Result<OpenedStore, Failure> {
    let name = handle.store();
    let chosen = match choose(args)? {
        chosen if matches!(chosen.by, ChosenBy::Flag | ChosenBy::Variable) => chosen,
        chosen if chosen.url.is_called(name) => chosen,
        _ => ChosenStore::parse(name, ChosenBy::Handle)?,
    };
    if !chosen.is_there()? {
        let (key, url) = (handle.key(), chosen.url());
        return Err(if chosen.url.is_called(name) {
            // Perhaps a disk is not mounted: a new store in its place would report that the lease does not exist.
            Failure::misconfigured(format!(
                "the store of the handle, {url}, does not exist: find out what happened to it"
            ))
        } else {
            // A store that does not exist has granted nothing, and is not created for that.
            Failure::usage(format!(
                "the handle is of lease {key} on another store: it was granted on {name}, and there is no store at {url}. \
                 Name its own store"
            ))
        });
    }
    chosen.open()
}

/// The store that the user named, or the user's default.
pub(crate) fn choose(args: &Args) -> Result<ChosenStore, Failure> {
    Ok(ChosenStore { again: args.check_store, ..choose_for_reading(args.store.as_deref())? })
}

/// The same without the safety check, which a command that only reads does not need.
pub(crate) fn choose_for_reading(url: Option<&str>) -> Result<ChosenStore, Failure> {
    if let Some(url) = url {
        return ChosenStore::parse(url, ChosenBy::Flag);
    }
    if let Some(url) = home::variable_value(VARIABLE) {
        let url = url.into_string().map_err(|url| {
            Failure::usage(format!(
                "{VARIABLE} is not text: {url:?}. Write other bytes as %XX, as in file:///x%FF"
            ))
        })?;
        return ChosenStore::parse(&url, ChosenBy::Variable);
    }
    if let Some((path, Config { store: Some(url) })) = Config::find()? {
        return ChosenStore::parse(&url, ChosenBy::Config(path));
    }
    let none = |why: String| {
        let advice = "name a store with --store file:///path, or in TENURE_STORE";
        Failure::misconfigured(format!("there is no default store for this user, because {why}: {advice}"))
    };
    let state = home::state().ok_or_else(|| {
        let user = nix::unistd::geteuid();
        none(format!("HOME is not set and the password database has no home for user {user}"))
    })?;
    if let Some(home) = home::missing() {
        return Err(none(format!("the home directory {} does not exist", home.display())));
    }
    let url = StoreUrl::of_directory(state.join("tenure")).map_err(|error| none(error.to_string()))?;
    Ok(ChosenStore { url, by: ChosenBy::Default, again: false })
}

/// The store with this URL, from an argument.
pub(crate) fn named(url: &str) -> Result<ChosenStore, Failure> {
    ChosenStore::parse(url, ChosenBy::Argument)
}

impl ChosenStore {
    fn parse(url: &str, by: ChosenBy) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::new(by.code(), format!("{}: {what}", by.name()));
        if url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("memory:")) {
            return Err(wrong(
                "memory: ends with this command, so no other process would see the lease: name a persistent store, \
                 such as file:///var/lib/tenure"
                    .to_owned(),
            ));
        }
        match url.parse() {
            Ok(url) => Ok(Self { url, by, again: false }),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// The URL, in its canonical form, with what the environment adds: it names what is really addressed.
    pub(crate) fn url(&self) -> String {
        self.url.resolved().to_string()
    }

    /// The origin of the choice, for programs: the option, the variable or the file that names the store, or `default`.
    pub(crate) fn origin(&self) -> String {
        match &self.by {
            ChosenBy::Flag => "--store".to_owned(),
            ChosenBy::Argument => "URL".to_owned(),
            ChosenBy::Variable => VARIABLE.to_owned(),
            ChosenBy::Config(path) => path.display().to_string(),
            ChosenBy::Default => "default".to_owned(),
            ChosenBy::Handle => "handle".to_owned(),
        }
    }

    /// The URL and the origin of the choice, for people.
    pub(crate) fn url_and_origin(&self) -> String {
        let url = output::plain(&self.url());
        match &self.by {
            ChosenBy::Default => format!("{url}, the default"),
            _ => format!("{url}, from {}", output::plain(&self.origin())),
        }
    }

    /// Creates the directory or the tables of the store, unless they exist.
    pub(crate) async fn create(&self) -> Result<(), Failure> {
        Ok(self.url.create().await?)
    }

    /// The statements that create the store, if it needs any.
    pub(crate) fn creation_statements(&self) -> Option<String> {
        self.url.creation_statements()
    }

    /// The statements that install a fence for tables of users, if the store is in a database.
    pub(crate) fn fence_statements(&self) -> Result<Option<String>, Failure> {
        self.url.fence_statements().map_err(|error| self.failure(error))
    }

    /// Risks of the store that are known and not refused.
    pub(crate) async fn risks(&self) -> Result<Vec<String>, Failure> {
        Ok(self.url.risks().await?)
    }

    /// A name that two URLs of one store share.
    pub(crate) fn identity(&self) -> String {
        self.url.identity()
    }

    /// Opens it, and creates it if necessary.
    pub(crate) fn open(&self) -> Result<OpenedStore, Failure> {
        let store = self.url.open().map_err(|error| self.failure(error))?;
        Ok(OpenedStore { store, url: self.url() })
    }

    /// Opens it with a separate connection.
    pub(crate) fn open_one_more(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(self.open()?.store)
    }

    /// The same store with the other form of ETags, and true if that is without quotes; `None` if it has no ETags.
    pub(crate) fn with_other_etags(&self) -> Option<(Self, bool)> {
        let (url, bare) = self.url.with_other_etags()?;
        Some((Self { url, by: ChosenBy::Argument, again: self.again }, bare))
    }

    /// Forgets the verdict: the next command on this machine that connects checks the store first.
    pub(crate) fn discard_verdict(&self) -> Result<(), Failure> {
        match (home::verdicts(), self.open()?.store.identity().place) {
            (Some(directory), Some(place)) => Ok(Verdicts::in_directory(directory).forget(&place)?),
            _ => Ok(()),
        }
    }

    /// Connects to the store for reading only. Creates and changes nothing; `None` if the store does not exist yet.
    pub(crate) async fn connect_to_read(&self) -> Result<Option<Coordinator>, Failure> {
        let Some(store) = self.url.open_to_read().map_err(|error| self.failure(error))? else {
            return Ok(None);
        };
        // A reader grants nothing, so no record names its process, and it does not need the safety check, which would write.
        let builder = with_logbook(builder_with_verdicts(self.again)).process(ProcessInfo::default());
        Ok(Some(if self.again {
            builder.connect(store).await?
        } else {
            builder.connect_dangerously_unchecked(store).await?
        }))
    }

    /// True if it exists. Creates nothing.
    pub(crate) fn is_there(&self) -> Result<bool, Failure> {
        self.url.is_there().map_err(|error| self.failure(error))
    }

    /// Its promises. Creates and changes nothing.
    pub(crate) fn promises(&self) -> Result<Promises, Failure> {
        Promises::of(&self.url).map_err(|error| self.failure(error))
    }

    /// Its charge for requests. Creates and sends nothing.
    pub(crate) fn charge(&self) -> Result<Charge, Failure> {
        Charge::of(&self.url).map_err(|error| self.failure(error))
    }

    /// The provider of the store, if its address is known. Creates and sends nothing.
    pub(crate) fn provider(&self) -> Result<Option<&'static str>, Failure> {
        self.url.provider().map_err(|error| self.failure(error))
    }

    fn failure(&self, error: Error) -> Failure {
        match (&self.by, error.kind()) {
            (ChosenBy::Config(_), ErrorKind::Invalid) => Failure::misconfigured(error.to_string()),
            (ChosenBy::Default, ErrorKind::Unsupported) => match foreign_home() {
                Some(sentence) => Failure::new(exit::REFUSED, sentence),
                None => error.into(),
            },
            _ => error.into(),
        }
    }
}

impl ChosenBy {
    fn name(&self) -> String {
        match self {
            Self::Flag => "--store".to_owned(),
            Self::Argument => "URL".to_owned(),
            Self::Variable => VARIABLE.to_owned(),
            Self::Config(path) => format!("store in {}", path.display()),
            Self::Default => "the default".to_owned(),
            Self::Handle => "the store of the handle".to_owned(),
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Flag | Self::Argument | Self::Variable | Self::Handle => exit::USAGE,
            Self::Config(_) | Self::Default => exit::UNSAFE,
        }
    }
}

/// A builder of a coordinator that uses the logbook of this user on this machine.
pub(crate) fn coordinator(args: &Args) -> CoordinatorBuilder {
    with_logbook(builder_with_verdicts(args.check_store))
}

/// The same without the logbook, for a command that observes nothing.
pub(crate) fn coordinator_without_logbook(args: &Args) -> CoordinatorBuilder {
    builder_with_verdicts(args.check_store)
}

/// A builder that trusts a recent verdict about the store, unless `again` is set.
fn builder_with_verdicts(again: bool) -> CoordinatorBuilder {
    let mut builder = Coordinator::builder();
    if let Some(directory) = home::verdicts() {
        builder = builder.verdicts(Verdicts::in_directory(directory));
    }
    if again { builder.check_again() } else { builder }
}

fn with_logbook(builder: CoordinatorBuilder) -> CoordinatorBuilder {
    match home::logbook() {
        Some(directory) => builder.logbook(Logbook::in_directory(directory)),
        None => builder,
    }
}

/// Warns on standard error if the logbook could not be written. The command continues: only later commands know less.
pub(crate) fn warn_if_logbook_failed(coordinator: &Coordinator, json: bool) {
    if let Some(sentence) = coordinator.logbook_error() {
        output::warn(&sentence, json);
    }
}

/// Connects to the store, unless a signal arrives or the wait for the lease is over before.
pub(crate) async fn connect(
    builder: CoordinatorBuilder,
    store: OpenedStore,
    wait: &WaitLimit,
    signals: &Signals,
) -> Result<Coordinator, Failure> {
    let OpenedStore { store, url } = store;
    tokio::select! {
        connected = builder.connect(store) => Ok(connected?),
        // Nothing is granted yet, so there is nothing to release.
        signal = signals.ended() => Err(Failure::silent(128 + signal as u8)),
        limit = wait.over() => Err(too_slow(&url, limit, "check that the store runs and can be reached")),
    }
}

/// Connects in the same way, and tries again while a limited wait lasts: a server that has just started may still load its
/// data. Without a limit, a wrong address would never be reported.
pub(crate) async fn connect_while_waiting(
    builder: CoordinatorBuilder,
    store: OpenedStore,
    wait: &WaitLimit,
    signals: &Signals,
    progress: &ProgressOutput,
) -> Result<Coordinator, Failure> {
    let is_repeated = wait.allows_waiting() && wait.given().is_some();
    let mut cause = None;
    let (clock, mut repetition) = (BootClock::new(), Repetition::new());
    loop {
        let OpenedStore { store: opened, url } = &store;
        let connected = tokio::select! {
            connected = builder.clone().connect(Arc::clone(opened)) => connected,
            signal = signals.ended() => return Err(Failure::silent(128 + signal as u8)),
            limit = wait.over() => {
                let advice = cause.as_deref().unwrap_or("check that the store runs and can be reached");
                return Err(too_slow(url, limit, advice));
            }
        };
        let error = match connected {
            Err(error) if is_repeated && may_pass(&error) => error,
            connected => return Ok(connected?),
        };
        let sentence = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let now = clock.now();
        if repetition.due(now) <= now {
            repetition.repeated(now);
            let limit = duration::exact(wait.given().unwrap_or_default());
            say_unavailable(progress, &format!("waiting for at most {limit} for {url}"), &sentence);
        }
        cause = Some(sentence);
    }
}

/// True if another attempt may reach the store: it did not answer, or not clearly. Missing rights do not pass.
fn may_pass(error: &Error) -> bool {
    let cause = error.source().and_then(|source| source.downcast_ref::<StoreError>());
    error.kind() == ErrorKind::Unavailable
        && match cause {
            Some(StoreError::Refused(refused)) => refused.reason == Reason::Unreachable,
            Some(StoreError::Unknown(_) | StoreError::Throttled(_)) => true,
            None => false,
        }
}

fn too_slow(url: &str, limit: Duration, why: &str) -> Failure {
    let limit = duration::exact(limit);
    Failure::unavailable(format!(
        "connecting to {url} took longer than --wait {limit}: {why}, or wait longer"
    ))
}

/// Runs a future that only waits for a coordinator.
pub(crate) fn block_on<T>(looking: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::unavailable(format!(
            "tenure has no free memory or file descriptor to wait for an answer: {error}"
        ))
    })?;
    runtime.block_on(looking)
}

/// Error if the default store would be in the home of another user. On some machines, `sudo` leaves HOME unchanged.
fn foreign_home() -> Option<String> {
    let home = home::home()?;
    let owner = std::fs::metadata(&home).ok()?.uid();
    let me = nix::unistd::geteuid().as_raw();
    (owner != me && owner != 0).then(|| {
        format!(
            "the store would be in the home directory of another user: HOME is {}, which belongs to user {owner}, and \
             this is user {me}. After sudo, use sudo -H; or name a store with --store file:///path",
            home.display()
        )
    })
}

/// Follows the URL of a store that does not exist.
pub(crate) const NOT_THERE: &str = " (it does not exist yet)";

const VARIABLE: &str = "TENURE_STORE";
