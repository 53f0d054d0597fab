use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tenure_store::{Guarantees, Reach, StoreClock};

use super::host::{Host, is_socket, parse_port};
use super::tables::check_name;
use super::target::{PasswordSource, Target};
use super::tls::{TlsMode, TlsRoots};
use super::{Environment, OpenError, Tables, password_file, service_file};
use crate::fence::FenceSchema;
use crate::statements;
use crate::store::{Parts, Postgres, VALUE_MAX};

/// Location of a database, and the way to reach it. Settings that are not given here come from a service file and the
/// environment, as with PostgreSQL's own tools.
///
/// Its `Display` is the equivalent URL, without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder opens nothing until open() is called"]
pub struct PostgresBuilder {
    hosts: Vec<(String, Option<u16>)>,
    /// Port of the usual host. Named hosts have their own.
    port: Option<u16>,
    user: Option<String>,
    database: Option<String>,
    service: Option<String>,
    /// The other parameters of a connection.
    parameters: BTreeMap<&'static str, String>,
    password: Option<Secret>,
    tables: Tables,
    server_clock: bool,
    fsync_off: bool,
    /// The first error. [`check`](Self::check) returns it, so that the methods can be chained.
    first_error: Option<OpenError>,
}

/// A password, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl PostgresBuilder {
    pub(crate) fn new() -> Self {
        Self {
            hosts: Vec::new(),
            port: None,
            user: None,
            database: None,
            service: None,
            parameters: BTreeMap::new(),
            password: None,
            tables: Tables::USUAL,
            server_clock: false,
            fsync_off: false,
            first_error: None,
        }
    }

    /// Adds a server: a name, an address, or the directory of a Unix socket. With several servers, Tenure uses the first
    /// one that can be reached and is not a standby.
    pub fn host(self, name: &str) -> Self {
        self.host_at(name, None)
    }

    /// Like [`host`](Self::host), with a port other than 5432.
    pub fn host_at(mut self, name: &str, port: impl Into<Option<u16>>) -> Self {
        match Host::list(name, None).as_deref() {
            Ok([_]) => self.hosts.push((name.to_owned(), port.into())),
            Ok(_) => {
                return self
                    .fail(OpenError::invalid(format!("{name:?} is not one host: name each host by itself")));
            }
            Err(error) => return self.fail(error.clone()),
        }
        self
    }

    /// Sets the port of the host that the environment names.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the role. Default: `PGUSER`, or the user of this process.
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self.require(is_text(user), || format!("{user:?} is not the name of a role"))
    }

    /// Sets the password. Default: `PGPASSWORD`, or the file in `PGPASSFILE` or `~/.pgpass`.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(Secret(password.to_owned()));
        self
    }

    /// Sets the database. Default: `PGDATABASE`, or the name of the role.
    pub fn database(mut self, database: &str) -> Self {
        self.database = Some(database.to_owned());
        self.require(is_text(database), || format!("{database:?} is not the name of a database"))
    }

    /// Keeps the tables in this schema. Default: `tenure`.
    pub fn schema(mut self, schema: &str) -> Self {
        self.tables.schema = Some(schema.to_owned()).filter(|schema| schema != Tables::SCHEMA);
        match check_name("schema", schema) {
            Ok(()) => self,
            Err(error) => self.fail(error),
        }
    }

    /// Keeps the records in this table, and the tokens in the table of the same name with `_token` after it. Default:
    /// `record` and `token`.
    pub fn table(mut self, table: &str) -> Self {
        self.tables.table = Some(table.to_owned()).filter(|table| table != Tables::TABLE);
        match check_name("table", table) {
            Ok(()) => self,
            Err(error) => self.fail(error),
        }
    }

    /// Uses the parameters of this service, from `~/.pg_service.conf` or the file in `PGSERVICEFILE`.
    pub fn service(mut self, service: &str) -> Self {
        self.service = Some(service.to_owned());
        self.require(is_text(service), || format!("{service:?} is not the name of a service"))
    }

    /// Sets a parameter of the connection under the name that PostgreSQL's own tools use: `sslmode`, `sslrootcert`,
    /// `sslcert`, `sslkey`, `sslnegotiation`, `channel_binding`, `connect_timeout`, `passfile`, `application_name`,
    /// `options` or `target_session_attrs`.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        let Some((name, _)) = PARAMETERS.iter().find(|(known, _)| *known == name) else {
            return self.fail(OpenError::invalid(format!(
                "a database has no option {name:?}: it has host, port, user, schema, table, service, {} and accept",
                PARAMETERS.map(|(name, _)| name).join(", ")
            )));
        };
        if let Err(error) = check_parameter(name, value) {
            return self.fail(error);
        }
        self.parameters.insert(name, value.to_owned());
        self
    }

    /// Accepts the server's wall clock as a judge: the age of a record is the time of the read minus the time of its
    /// write. A contender that has just started then need not wait for a ttl before it takes over from a holder that
    /// died long ago. A record that another server process wrote has no age, so a restart or a failover does not count.
    /// The risk: a clock that is set forward, by hand or by NTP, ends the leases of live holders. Two may then hold one
    /// lease until the first notices, and only the fence protects.
    pub fn accept_server_clock(mut self) -> Self {
        self.server_clock = true;
        self
    }

    /// Accepts a server whose `fsync` is off: a crash of its machine may lose acknowledged writes, and then two may hold
    /// one lease.
    pub fn accept_fsync_off(mut self) -> Self {
        self.fsync_off = true;
        self
    }

    /// Fails if a setting so far cannot be right.
    pub fn check(&self) -> Result<(), OpenError> {
        self.first_error.clone().map_or(Ok(()), Err)
    }

    /// Opens the store. Sends nothing yet: the first call connects.
    pub fn open(&self) -> Result<Postgres, OpenError> {
        self.open_in(&Environment::of_process())
    }

    /// Like [`open`](Self::open), with these variables instead of those of this process.
    pub fn open_in(&self, environment: &Environment) -> Result<Postgres, OpenError> {
        let resolved = self.resolve(environment)?;
        Ok(Postgres::new(Parts {
            target: resolved.target(environment)?,
            tables: self.tables.clone(),
            guarantees: self.guarantees(),
            url: resolved.name(&self.tables, false),
            place: resolved.name(&self.tables, true),
            server_clock: self.server_clock,
            fsync_off: self.fsync_off,
        }))
    }

    /// Name of the store. Opens nothing, so it needs no password.
    pub fn store_name(&self) -> Result<String, OpenError> {
        Ok(self.resolve(&Environment::of_process())?.name(&self.tables, false))
    }

    /// The same store with the host, the database and the role that the environment adds, so that every process which
    /// opens it addresses the same rows, whatever its environment.
    pub fn resolved(&self) -> Result<Self, OpenError> {
        let resolved = self.resolve(&Environment::of_process())?;
        Ok(Self {
            hosts: resolved.hosts.into_iter().map(|host| (host.name, Some(host.port))).collect(),
            port: None,
            user: Some(resolved.user),
            database: Some(resolved.database),
            ..self.clone()
        })
    }

    /// Guarantees of the store. Opens nothing.
    ///
    /// A server that does not have them, such as a standby or one without `fsync`, is refused when a call connects.
    pub fn guarantees(&self) -> Guarantees {
        let mut guarantees = Guarantees::default();
        guarantees.atomic_create = true;
        guarantees.atomic_replace = true;
        guarantees.linearizable_reads = true;
        guarantees.keeps_acknowledged = !self.fsync_off;
        guarantees.accepted_loss = self.fsync_off.then_some("accept=fsync-off");
        guarantees.unique_versions = true;
        guarantees.reach = Reach::Network;
        guarantees.clock = if self.server_clock { StoreClock::Ages } else { StoreClock::Floors };
        // It counts microseconds, and every statement takes longer.
        guarantees.clock_tick = Duration::ZERO;
        guarantees.watch = true;
        guarantees.write_interval = Duration::ZERO;
        guarantees.value_max = VALUE_MAX;
        guarantees
    }

    /// The statements that create the schema and the tables, for an administrator. They end with the least rights of the
    /// role, if the builder names it.
    pub fn creation_statements(&self) -> String {
        let creation = statements::creation(&self.tables, false);
        let rights = self.user.as_deref().map(|user| statements::rights(&self.tables, user));
        creation + rights.as_deref().unwrap_or_default()
    }

    /// The statements that install the [fences](FenceSchema) for tables of users in the schema of this store, for an
    /// administrator. They end with the least rights of the role, if the builder names it.
    pub fn fence_statements(&self) -> Result<String, OpenError> {
        let fences = FenceSchema::named(self.tables.schema_name())?.with_leases_of(self)?;
        let rights = self.user.as_deref().map(|user| fences.rights(user));
        Ok(fences.migration() + rights.as_deref().unwrap_or_default())
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    fn require(self, right: bool, sentence: impl FnOnce() -> String) -> Self {
        if right { self } else { self.fail(OpenError::invalid(sentence())) }
    }

    fn fail(mut self, error: OpenError) -> Self {
        self.first_error.get_or_insert(error);
        self
    }

    /// Adds the settings of the service file and the environment.
    fn resolve(&self, environment: &Environment) -> Result<Resolved, OpenError> {
        self.check()?;
        let service = self.service.as_deref().or_else(|| environment.get("PGSERVICE"));
        let service =
            service.map(|name| service_file::read(name, environment)).transpose()?.unwrap_or_default();
        let of_service = |name: &str| service.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let find = |name: &str, variable: &str| of_service(name).or_else(|| environment.get(variable));
        if let Some((name, variable)) =
            UNCHECKED.iter().find(|(name, variable)| find(name, variable).is_some())
        {
            return Err(OpenError::invalid(format!(
                "Tenure does not have the check that {variable} or {name} in a service file asks for: unset it for Tenure"
            )));
        }
        let mut parameters = self.parameters.clone();
        for (name, variable) in PARAMETERS {
            if let (false, Some(value)) = (parameters.contains_key(name), find(name, variable)) {
                check_parameter(name, value)?;
                parameters.insert(name, value.to_owned());
            }
        }
        let port = self.port.map(|port| port.to_string());
        let port = port.as_deref().or_else(|| find("port", "PGPORT"));
        let hosts = if self.hosts.is_empty() {
            match find("host", "PGHOST") {
                Some(names) => Host::list(names, port)?,
                None => vec![usual_host(port.map(parse_port).transpose()?.unwrap_or(Host::PORT))],
            }
        } else {
            let port = port.filter(|port| !port.contains(',')).map(parse_port).transpose()?;
            let host = |(name, own): &(String, Option<u16>)| Host {
                name: name.clone(),
                port: own.or(port).unwrap_or(Host::PORT),
            };
            self.hosts.iter().map(host).collect()
        };
        let user = self.user.as_deref().or_else(|| find("user", "PGUSER"));
        let user = user.map_or_else(process_user, |user| Ok(user.to_owned()))?;
        let database =
            self.database.as_deref().or_else(|| find("dbname", "PGDATABASE")).unwrap_or(&user).to_owned();
        let password = of_service("password").or_else(|| environment.get("PGPASSWORD"));
        let password = self.password.clone().or_else(|| Some(Secret(password?.to_owned())));
        Ok(Resolved { hosts, user, database, parameters, password })
    }
}

/// A store with all settings.
struct Resolved {
    hosts: Vec<Host>,
    user: String,
    database: String,
    parameters: BTreeMap<&'static str, String>,
    password: Option<Secret>,
}

impl Resolved {
    fn target(&self, environment: &Environment) -> Result<Target, OpenError> {
        let file = self.parameters.get("passfile").map(PathBuf::from).or_else(|| environment.home(".pgpass"));
        let source = match (&self.password, file) {
            (Some(password), _) => PasswordSource::Known(password.clone()),
            (None, Some(file)) => PasswordSource::File(file),
            (None, None) => PasswordSource::Nothing,
        };
        let own_file = |name: &str, usual: &str| {
            let named = self.parameters.get(name).map(PathBuf::from);
            named.or_else(|| environment.home(usual).filter(|path| path.exists()))
        };
        let roots = match own_file("sslrootcert", ".postgresql/root.crt") {
            None => TlsRoots::Unnamed,
            Some(path) if path.as_os_str() == "system" => TlsRoots::System,
            Some(path) => TlsRoots::File(path),
        };
        let certificate = own_file("sslcert", ".postgresql/postgresql.crt");
        let key = own_file("sslkey", ".postgresql/postgresql.key");
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (Some(certificate), None) => {
                return Err(OpenError::invalid(format!(
                    "the certificate {} of the client has no key: name its file with sslkey in the URL",
                    certificate.display()
                )));
            }
            (None, Some(key)) if self.parameters.contains_key("sslkey") => {
                return Err(OpenError::invalid(format!(
                    "the key {} of the client has no certificate: name its file with sslcert in the URL",
                    key.display()
                )));
            }
            (None, _) => None,
        };
        Target::new(super::target::TargetParts {
            hosts: &self.hosts,
            user: &self.user,
            database: &self.database,
            parameters: &self.parameters,
            source,
            roots,
            client,
        })
    }

    /// Name of the store: the same for every caller, except for the role.
    fn name(&self, tables: &Tables, with_user: bool) -> String {
        let builder = PostgresBuilder {
            hosts: self.hosts.iter().map(|host| (host.name.clone(), Some(host.port))).collect(),
            user: with_user.then(|| self.user.clone()),
            database: Some(self.database.clone()),
            tables: tables.clone(),
            ..PostgresBuilder::new()
        };
        builder.to_string()
    }
}

impl fmt::Display for PostgresBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = |text: &str| utf8_percent_encode(text, &ESCAPED).to_string();
        f.write_str("postgres://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", escaped(user))?;
        }
        let port = |port: &Option<u16>| port.map(|port| port.to_string()).unwrap_or_default();
        let (mut host_option, mut port_option) = (None, self.port.map(|port| port.to_string()));
        if self.hosts.iter().any(|(name, _)| is_socket(name)) {
            let names: Vec<_> = self.hosts.iter().map(|(name, _)| name.as_str()).collect();
            host_option = Some(names.join(","));
            if self.hosts.iter().any(|(_, port)| port.is_some()) {
                port_option = Some(self.hosts.iter().map(|(_, own)| port(own)).collect::<Vec<_>>().join(","));
            }
        } else {
            for (at, (name, port)) in self.hosts.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                let (open, close) = if name.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "{comma}{open}{name}{close}")?;
                if let Some(port) = port {
                    write!(f, ":{port}")?;
                }
            }
        }
        if let Some(database) = &self.database {
            write!(f, "/{}", escaped(database))?;
        }
        let own = [
            ("host", host_option),
            ("port", port_option),
            ("schema", self.tables.schema.clone()),
            ("table", self.tables.table.clone()),
            ("service", self.service.clone()),
        ];
        let others = self.parameters.iter().map(|(name, value)| (*name, Some(value.clone())));
        let accepted = [("server-clock", self.server_clock), ("fsync-off", self.fsync_off)];
        let accepted = accepted.into_iter().map(|(name, on)| ("accept", on.then(|| name.to_owned())));
        let mut separator = '?';
        for (name, value) in own.into_iter().chain(others).chain(accepted) {
            if let Some(value) = value {
                write!(f, "{separator}{name}={}", escaped(&value))?;
                separator = '&';
            }
        }
        Ok(())
    }
}

/// Checks a value that a connection would otherwise refuse later.
fn check_parameter(name: &str, value: &str) -> Result<(), OpenError> {
    let wrong =
        |expected: &str| Err(OpenError::invalid(format!("{name}={value:?} is wrong: use {expected}")));
    let absolute = |path: &str| path.starts_with('/') && !path.contains('\0');
    match name {
        "sslmode" => TlsMode::parse(value).map(drop),
        "sslrootcert" if !absolute(value) && value != "system" => wrong("an absolute path, or system"),
        "sslcert" | "sslkey" | "passfile" if !absolute(value) => wrong("an absolute path"),
        "sslnegotiation" if !["postgres", "direct"].contains(&value) => wrong("postgres or direct"),
        "channel_binding" if !["disable", "prefer", "require"].contains(&value) => {
            wrong("disable, prefer or require")
        }
        "connect_timeout" if value.parse::<u32>().is_err() => wrong("a number of seconds"),
        // Tenure uses a server only if it accepts writes, whatever is chosen here.
        "target_session_attrs" if !["any", "read-write", "primary"].contains(&value) => {
            wrong("read-write: a lease needs a server that accepts writes")
        }
        _ if value.contains('\0') => wrong("text"),
        _ => Ok(()),
    }
}

/// The server that PostgreSQL's own tools use if none is named: its socket, or localhost if there is none.
fn usual_host(port: u16) -> Host {
    let sockets = password_file::USUAL_SOCKETS.into_iter();
    let mut sockets = sockets.map(|name| Host { name: name.to_owned(), port });
    let found = sockets.find(|host| std::path::Path::new(&host.to_string()).exists());
    found.unwrap_or_else(|| Host { name: "localhost".to_owned(), port })
}

/// Name of the user of this process.
fn process_user() -> Result<String, OpenError> {
    let number = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.ok_or_else(|| {
        OpenError::invalid("the role is not known: write postgres://role@host/database, or set PGUSER")
    })
}

fn is_text(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}

/// The parameters of a connection that have no method of their own, each with its variable.
const PARAMETERS: [(&str, &str); 11] = [
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("passfile", "PGPASSFILE"),
    ("application_name", "PGAPPNAME"),
    ("options", "PGOPTIONS"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
];

/// Parameters that ask for a check of the server which Tenure does not have, each with its variable. Without a word, a
/// user would rely on it.
const UNCHECKED: [(&str, &str); 4] = [
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("require_auth", "PGREQUIREAUTH"),
    ("requirepeer", "PGREQUIREPEER"),
];

/// Characters that must be escaped in a part of a URL.
const ESCAPED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_store_has_every_parameter_with_its_variable() {
        let page = include_str!("../../../../docs/stores/postgres.md");
        let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let own = [
            ("host", "PGHOST"),
            ("port", "PGPORT"),
            ("user", "PGUSER"),
            ("dbname", "PGDATABASE"),
            ("service", "PGSERVICE"),
        ];
        let with_variable = PARAMETERS.into_iter().chain(own);
        for (name, variable) in with_variable.chain(["schema", "table", "accept"].map(|name| (name, ""))) {
            let names =
                |row: &&&str| row.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{name}`")));
            let row = rows.iter().find(names).unwrap_or_else(|| panic!("no row has {name}"));
            assert!(row.contains(variable), "{name} lacks {variable}: {row}");
        }
        for (name, _) in UNCHECKED {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
        for risk in ["server-clock", "fsync-off"] {
            assert!(rows.iter().any(|row| row.starts_with("| `accept`") && row.contains(risk)), "{risk}");
        }
    }
}
