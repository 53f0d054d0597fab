//! The first commands of a connection, in one round trip: authentication, and all that decides whether the server may be
//! used.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, Value, cmd, pipe};
use tenure_store::{Quarantine, Reason, RunMarks, RunSighting};

use super::task::spawn;
use super::{ANSWER_MAX, Connection, ServerInfo, Wire};
use crate::boot_time;
use crate::names::Names;
use crate::open::{Address, OpenError, ReplicaConfirmation, Settings};
use crate::scripts::Operation;
use crate::words;

/// Opens a connection on this stream, and refuses a server that is not as the settings require.
pub(crate) async fn perform(
    stream: Box<dyn Wire>,
    address: &Address,
    settings: &Settings,
) -> Result<Connection, OpenError> {
    let broken = |error: redis::RedisError| words::of_no_handshake(&error, address, settings);
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(Some(ANSWER_MAX))
        .set_pipeline_buffer_size(QUEUED_MAX);
    // The client itself sends nothing: no name, no protocol and no password.
    let nothing = RedisConnectionInfo::default().set_skip_set_lib_name();
    let (client, driver) =
        MultiplexedConnection::new_with_config(&nothing, stream, config).await.map_err(broken)?;
    let mut connection = Connection {
        client,
        driver: spawn(driver),
        address: address.clone(),
        server: ServerInfo::default(),
        suspect: AtomicBool::new(false),
        quarantine: Mutex::new(Quarantine::unneeded(&RunSighting::new("", "", Duration::ZERO))),
        restart_id: None,
        marks_read_at: Mutex::new(boot_time::now()),
    };
    let names = Names::with(&settings.prefix);
    let steps = steps(settings, &names, password(settings).await?)?;
    let mut commands = pipe();
    for (_, command) in &steps {
        commands.add_command(command.clone());
    }
    let answers = connection.send_all(&commands).await.map_err(broken)?;
    let mut server = ServerInfo::default();
    let mut config = HashMap::new();
    let mut refusal_to_wait = None;
    for ((step, _), answer) in steps.iter().zip(answers) {
        if let Value::ServerError(error) = &answer {
            match step {
                Step::Section(name) if words::is_not_allowed(error) => server.unknown.push(name),
                // Hosted servers have no such command.
                Step::Setting => {}
                Step::Wait => refusal_to_wait = Some(error.clone()),
                Step::Confirmation | Step::Section(_) | Step::Restart => {
                    return Err(words::of_handshake(error, address, settings));
                }
            }
            continue;
        }
        match step {
            Step::Confirmation | Step::Wait => {}
            Step::Section(_) => server.add_section(&text(answer)),
            Step::Setting => config.extend(pairs(answer)),
            Step::Restart => server.restart = pairs(answer).into_iter().collect(),
        }
    }
    server.add_settings(&config);
    if settings.database > 0 && !server.run.is_empty() {
        // `SWAPDB` replaces the data of a database without a restart.
        server.run.push_str(&format!(".db{}", settings.database));
    }
    words::check(&server, address, settings)?;
    if let Some(error) = &refusal_to_wait {
        return Err(words::of_refusal_to_wait(error, address, settings));
    }
    // Without a quarantine, too, each version names its run: after a restart, a participant reads before it writes.
    let sighting = RunSighting::new(server.run.as_str(), "", Duration::ZERO);
    connection.quarantine = Mutex::new(Quarantine::unneeded(&sighting));
    connection.server = server;
    if settings.has_quarantine() {
        sight(&mut connection, settings, &names).await?;
    }
    Ok(connection)
}

/// Begins the quarantine of this run, or finds that it is over.
async fn sight(connection: &mut Connection, settings: &Settings, names: &Names) -> Result<(), OpenError> {
    let server = &connection.server;
    // After the answer, so that the run had begun.
    let now = boot_time::now();
    let clock = boot_time::domain();
    if server.restart.get("cleared").is_none_or(|run| *run != server.run) {
        let mut arguments =
            vec![server.run.clone(), settings.quarantine.as_millis().to_string(), crate::stamp()];
        if let Some(clock) = &clock {
            arguments.extend([format!("{SEEN}{clock}"), now.as_micros().to_string()]);
        }
        let arguments: Vec<_> = arguments.iter().map(String::as_bytes).collect();
        match connection.run(Operation::Sight, &[&names.restart()], &arguments).await {
            // A user who may only read, or a server that refuses writes now. This connection can still read.
            Ok(Value::ServerError(_)) | Err(_) => {}
            Ok(answer) => connection.server.restart = pairs(answer).into_iter().collect(),
        }
    }
    let server = &connection.server;
    words::check_quarantine(server, settings)?;
    // A clock without a name can be compared with no other one. This connection counts on it all the same.
    let clock = clock.unwrap_or_else(crate::stamp);
    let mut sighting = RunSighting::new(server.run.as_str(), clock, now);
    sighting.uptime = server.uptime;
    connection.quarantine =
        Mutex::new(Quarantine::new(settings.quarantine, &sighting, &marks(&server.restart)));
    connection.restart_id = Some(server.restart.get("id").cloned().unwrap_or_default());
    Ok(())
}

/// The marks in the restart record.
fn marks(restart: &HashMap<String, String>) -> RunMarks {
    let mut marks = RunMarks::default();
    marks.run = restart.get("run").map(|run| run.as_str().into());
    marks.cleared = restart.get("cleared").map(|run| run.as_str().into());
    for (field, reading) in restart {
        if let (Some(clock), Ok(micros)) = (field.strip_prefix(SEEN), reading.parse()) {
            marks = marks.with_sighting(clock, Duration::from_micros(micros));
        }
    }
    marks
}

/// One command of the handshake.
enum Step {
    /// The answer must not be an error.
    Confirmation,
    /// A section of `INFO`.
    Section(&'static str),
    /// A setting.
    Setting,
    /// The command that waits for replicas, here for none.
    Wait,
    /// The restart record.
    Restart,
}

fn steps(
    settings: &Settings,
    names: &Names,
    password: Option<String>,
) -> Result<Vec<(Step, Cmd)>, OpenError> {
    let mut steps = Vec::new();
    if let (Some(user), None) = (&settings.user, &password) {
        // Without AUTH, the server would serve the connection as its default user.
        return Err(OpenError::new(
            Reason::Denied,
            format!(
                "there is no password for the user {user:?}: put it into {PASSWORD_VARIABLE}, or into a file that \
                 password-file= names"
            ),
        ));
    }
    if let Some(password) = password {
        let mut auth = cmd("AUTH");
        if let Some(user) = &settings.user {
            auth.arg(user);
        }
        auth.arg(password);
        steps.push((Step::Confirmation, auth));
    }
    if settings.database > 0 {
        steps.push((Step::Confirmation, cmd("SELECT").arg(settings.database).clone()));
    }
    for section in ["server", "replication", "memory", "modules"] {
        steps.push((Step::Section(section), cmd("INFO").arg(section).clone()));
    }
    for name in REPLICATION {
        steps.push((Step::Setting, cmd("CONFIG").arg("GET").arg(name).clone()));
    }
    if settings.has_quarantine() {
        steps.push((Step::Restart, cmd("HGETALL").arg(names.restart()).clone()));
    }
    if let Some(confirmation) = settings.confirmation {
        steps.push((Step::Wait, super::wait_command(ReplicaConfirmation { replicas: 0, ..confirmation })));
    }
    Ok(steps)
}

/// The password, from the place that the settings name.
pub(crate) async fn password(settings: &Settings) -> Result<Option<String>, OpenError> {
    if let Some(password) = &settings.password {
        return Ok(Some(password.clone()));
    }
    if let Some(path) = &settings.password_file {
        let failed = |error: io::Error| {
            let path = path.display();
            OpenError::new(Reason::Denied, format!("the password in {path} cannot be read: {error}"))
        };
        let text = read(path.clone()).await.map_err(failed)?;
        return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
    }
    Ok(std::env::var(PASSWORD_VARIABLE).ok().filter(|password| !password.is_empty()))
}

/// Reads a file on another thread: a file system that does not answer must not block the keeper.
async fn read(path: PathBuf) -> io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "opens a connection, on the runtime of its calls")]
    let reading = tokio::task::spawn_blocking(|| std::fs::read_to_string(path));
    reading.await.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
}

fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) => text,
        Value::VerbatimString { text, .. } => text,
        _ => String::new(),
    }
}

/// An array of alternating names and values.
fn pairs(value: Value) -> Vec<(String, String)> {
    let Value::Array(items) = value else { return Vec::new() };
    let texts: Vec<String> = items.into_iter().map(text).collect();
    texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// Settings about servers with the same data. Only KeyDB has the first two.
const REPLICATION: [&str; 3] = ["active-replica", "multi-master", "min-replicas-to-write"];

/// Commands that wait for the socket. A keeper renews more leases than the client's default at once.
const QUEUED_MAX: usize = 4096;

/// The variable of the server's own tools for the password.
pub(crate) const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

/// Fields of the restart record with the first sighting on a clock begin so.
const SEEN: &str = "seen:";
