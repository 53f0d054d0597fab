use std::collections::HashMap;
use std::time::Duration;

/// The server at the other end of a connection, as the handshake found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    /// The run id, which each start of a server changes, and the replication id, which each change of its role changes.
    /// Empty if the user may not read it.
    pub(crate) run: String,
    /// `standalone`, `cluster` or `sentinel`.
    pub(crate) mode: String,
    pub(crate) is_replica: bool,
    pub(crate) replicas: u32,
    /// The eviction policy, if there is a limit of memory that can make the server evict.
    pub(crate) evicts: Option<String>,
    /// The sign that other servers accept writes of the same data, such as `active-replica yes`.
    pub(crate) active_active: Option<String>,
    /// Replicas without which the server refuses writes; `None` if the user may not read that.
    pub(crate) min_replicas: Option<u32>,
    /// Settings that the user may not read.
    pub(crate) unknown: Vec<&'static str>,
    /// The fields of the restart record.
    pub(crate) restart: HashMap<String, String>,
    /// Time for which the server says it has run.
    pub(crate) uptime: Option<Duration>,
}

impl ServerInfo {
    /// Adds one section of `INFO`.
    pub(crate) fn add_section(&mut self, section: &str) {
        let fields: HashMap<&str, &str> =
            section.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        let get = |name| fields.get(name).copied();
        if let Some(run) = get("run_id") {
            self.run.insert_str(0, run);
        }
        if let Some(seconds) = get("uptime_in_seconds").and_then(|seconds| seconds.parse().ok()) {
            self.uptime = Some(Duration::from_secs(seconds));
        }
        if let Some(mode) = get("redis_mode").or(get("server_mode")) {
            mode.clone_into(&mut self.mode);
        }
        if let Some(role) = get("role") {
            self.is_replica = !matches!(role, "master" | ACTIVE_REPLICA);
            if role == ACTIVE_REPLICA {
                self.active_active = Some(format!("role {role}"));
            }
        }
        let modules = section.lines().filter_map(|line| line.strip_prefix("module:name="));
        let mut names = modules.filter_map(|module| module.split(',').next());
        if let Some(name) = names.find(|name| name.starts_with("crdt")) {
            self.active_active = Some(format!("module {name}"));
        }
        if let Some(id) = get("master_replid") {
            self.run.push('.');
            self.run.push_str(id.get(..REPLICATION_ID_SHOWN).unwrap_or(id));
        }
        if let Some(replicas) = get("connected_slaves") {
            self.replicas = replicas.parse().unwrap_or_default();
        }
        if get("maxmemory").is_some_and(|max| max != "0") {
            self.evicts = get("maxmemory_policy").filter(|policy| *policy != "noeviction").map(str::to_owned);
        }
    }

    /// Adds the settings that `CONFIG GET` has shown. A setting that it has not shown has no value.
    pub(crate) fn add_settings(&mut self, settings: &HashMap<String, String>) {
        let is = |name: &str, value: &str| settings.get(name).is_some_and(|found| found == value);
        if let Some(name) = [ACTIVE_REPLICA, "multi-master"].into_iter().find(|name| is(name, "yes")) {
            self.active_active = Some(format!("{name} yes"));
        }
        self.min_replicas = settings.get("min-replicas-to-write").and_then(|number| number.parse().ok());
    }
}

/// Role, and setting, of a KeyDB server that accepts writes beside another one.
const ACTIVE_REPLICA: &str = "active-replica";

/// Enough of the replication id to distinguish the few of one run.
const REPLICATION_ID_SHOWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_consists_of_the_run_id_and_the_replication_id() {
        let mut server = ServerInfo::default();
        server.add_section("# Server\r\nredis_mode:standalone\r\nrun_id:abc\r\n");
        server.add_section(
            "# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmaster_replid:0123456789abcdef\r\n",
        );
        assert_eq!((server.run.as_str(), server.mode.as_str()), ("abc.0123456789ab", "standalone"));
        assert_eq!((server.is_replica, server.replicas), (false, 2));
        for odd in ["short", "11 bytes, a…"] {
            let mut server = ServerInfo::default();
            server.add_section(&format!("master_replid:{odd}\r\n"));
            assert_eq!(server.run, format!(".{odd}"), "no panic inside a character");
        }
    }

    /// The lines are as the documentation of KeyDB describes them, and of a server with a module. No KeyDB server was tested.
    #[test]
    fn a_server_that_shares_its_data_with_others_that_accept_writes_is_active_active() {
        let sign_in = |section: &str| {
            let mut server = ServerInfo::default();
            server.add_section(section);
            assert!(!server.is_replica, "it accepts writes");
            server.active_active
        };
        assert_eq!(
            sign_in("role:active-replica\r\nconnected_slaves:1\r\n").as_deref(),
            Some("role active-replica")
        );
        assert_eq!(sign_in("# Modules\r\nmodule:name=crdt,ver=1,api=1\r\n").as_deref(), Some("module crdt"));
        assert_eq!(sign_in("# Modules\r\nmodule:name=search,ver=1\r\n"), None);
        for (name, value, sign) in [
            ("active-replica", "yes", Some("active-replica yes")),
            ("multi-master", "yes", Some("multi-master yes")),
            ("multi-master", "no", None),
        ] {
            let mut server = ServerInfo::default();
            server.add_settings(&HashMap::from([(name.to_owned(), value.to_owned())]));
            assert_eq!(server.active_active.as_deref(), sign);
        }
    }

    #[test]
    fn a_server_evicts_only_if_it_has_a_limit_and_a_policy() {
        for (section, evicts) in [
            ("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", None),
            ("maxmemory:100\r\nmaxmemory_policy:noeviction\r\n", None),
            ("maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n", Some("allkeys-lru")),
            ("maxmemory:100\r\nmaxmemory_policy:volatile-ttl\r\n", Some("volatile-ttl")),
        ] {
            let mut server = ServerInfo::default();
            server.add_section(section);
            assert_eq!(server.evicts.as_deref(), evicts);
        }
    }
}
