//! The lane of each test binary, and the stores whose tests have a budget.

/// The lane in which a binary runs. Patterns are prefixes of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The binary does not depend on real time and needs a processor all the time. It runs at the lowest priority,
    /// beside the waiting lane.
    Busy,
    /// The binary mostly waits, and tolerates a process of low priority beside it.
    Waiting,
    /// The binary tests a store on a real server, with a ttl of some seconds. It runs beside the waiting lane; two of them at
    /// once would be too much for two processors.
    Servers,
    /// The binary has time limits, and mostly waits: two others of its lane run beside it, and nothing else.
    Clocks,
    /// The binary is a crowd or a gauntlet on a networked store: it loads the machine, and its ttls allow for another of its
    /// lane beside it.
    Crowds,
    /// The binary asserts that nothing was late, or loads the machine so that others would be late: nothing runs beside it.
    /// This is the default.
    Alone,
}

impl Lane {
    /// The lane with this name.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "busy" => Self::Busy,
            "waiting" => Self::Waiting,
            "servers" => Self::Servers,
            "clocks" => Self::Clocks,
            "crowds" => Self::Crowds,
            "alone" => Self::Alone,
            _ => panic!("no lane is called {name}: busy, waiting, servers, clocks, crowds or alone"),
        }
    }

    /// The lane of a binary.
    pub(crate) fn of(binary: &str) -> Self {
        match () {
            () if is_in(BUSY, binary) => Self::Busy,
            () if is_in(CROWDS, binary) => Self::Crowds,
            () if is_in(WAITING, binary) => Self::Waiting,
            () if is_in(SERVERS, binary) => Self::Servers,
            () if is_in(CLOCKS, binary) => Self::Clocks,
            () => Self::Alone,
        }
    }
}

/// True for a binary that `./test quick` leaves out.
pub(crate) fn is_left_out(binary: &str) -> bool {
    mode() == "quick" && is_in(LONG, binary)
}

/// True for a binary that takes so long that it starts before the others of its lane.
pub(crate) fn is_early(binary: &str) -> bool {
    is_in(EARLY, binary)
}

/// The store that a binary tests, if it tests one.
pub(crate) fn store_of(binary: &str) -> Option<&'static str> {
    STORES.iter().find(|(_, patterns)| is_in(patterns, binary)).map(|(store, _)| *store)
}

/// The argument of `./test`.
pub(crate) fn mode() -> String {
    std::env::var("TENURE_TEST_MODE").unwrap_or_default()
}

/// The patterns that match no binary: its name has changed since the plan was written.
pub(crate) fn unfit(binaries: &[&str]) -> Vec<&'static str> {
    let patterns = [BUSY, WAITING, SERVERS, CLOCKS, CROWDS, EARLY, LONG]
        .into_iter()
        .chain(STORES.iter().map(|(_, patterns)| *patterns))
        .flatten();
    patterns.copied().filter(|pattern| !binaries.iter().any(|name| name.starts_with(pattern))).collect()
}

fn is_in(patterns: &[&str], binary: &str) -> bool {
    patterns.iter().any(|pattern| binary.starts_with(pattern))
}

const BUSY: &[&str] = &["tenure/held_loom", "tenure-core/", "tenure-sim/", "tenure-sqlite/"];

const WAITING: &[&str] = &[
    "tenure-cli/default_build",
    "tenure-cli/probe",
    "tenure-conformance/",
    "tenure-connect/",
    "tenure-probe/",
    "tenure-store/",
    "tenure-testkit/",
];

const SERVERS: &[&str] = &[
    "tenure-object/azurite",
    "tenure-object/fake_gcs",
    "tenure-object/minio",
    "tenure-object/seaweedfs",
    "tenure-postgres/",
    "tenure-redis/acl",
    "tenure-redis/clock",
    "tenure-redis/contract",
    "tenure-redis/fence",
    "tenure-redis/servers",
];

/// They need a processor for about a tenth of their time. Not here: the pages of the documentation, whose output changes when
/// a guard is late; crowds and gauntlets, which load the machine; and tests of the machine's cgroups and limits.
const CLOCKS: &[&str] = &[
    "tenure-cli/bucket",
    "tenure-cli/container",
    "tenure-cli/demo",
    "tenure-cli/elect_contract",
    "tenure-cli/examples",
    "tenure-cli/forget",
    "tenure-cli/generated",
    "tenure-cli/google",
    "tenure-cli/guarantees",
    "tenure-cli/handle_places",
    "tenure-cli/handles",
    "tenure-cli/history",
    "tenure-cli/leader",
    "tenure-cli/kv",
    "tenure-cli/logbook",
    "tenure-cli/redis",
    "tenure-cli/run_contract",
    "tenure-cli/run_foreign",
    "tenure-cli/run_gone",
    "tenure-cli/run_outlived",
    "tenure-cli/run_terminal",
    "tenure-cli/run_tree",
    "tenure-cli/run_witness",
    "tenure-cli/slots",
    "tenure-cli/postgres",
    "tenure-cli/steal",
    "tenure-cli/unit",
    "tenure-cli/usage",
    "tenure-cli/watch",
    "tenure-cli/which_store",
    "tenure-object/azure_credentials",
    "tenure-object/azure_wire",
    "tenure-object/credentials",
    "tenure-object/encrypted",
    "tenure-object/google_",
    "tenure-object/polling",
    "tenure-object/server_clock",
    "tenure-object/through_proxy",
    "tenure-object/unit",
    "tenure-object/verdicts",
    "tenure-object/wire",
    "tenure-redis/restart",
    "tenure-redis/topology",
    "tenure-redis/unit",
    "tenure-redis/wire",
    "tenure/answers",
    "tenure/bad_input",
    "tenure/blocking",
    "tenure/boot_id",
    "tenure/calls",
    "tenure/cancel",
    "tenure/connect_check",
    "tenure/election",
    "tenure/end_term",
    "tenure/examples",
    "tenure/fence_",
    "tenure/file_clock",
    "tenure/file_crash",
    "tenure/file_faults",
    "tenure/file_directory",
    "tenure/file_gone",
    "tenure/file_model",
    "tenure/file_remove",
    "tenure/forget",
    "tenure/gate",
    "tenure/handles",
    "tenure/heed_tree",
    "tenure/keeper",
    "tenure/keys",
    "tenure/lease",
    "tenure/logbook",
    "tenure/panics",
    "tenure/reports",
    "tenure/rooms",
    "tenure/set",
    "tenure/slots",
    "tenure/standing",
    "tenure/stop",
    "tenure/trust",
    "tenure/unit",
    "tenure/watch",
    "tenure/witness",
];

/// They wait for a ttl of seconds most of the time, and need a processor for a quarter of it at most. Not here: the crowds on
/// the file store, everything on Azurite, and the gauntlet on MinIO, which keep the processors busy; and the candidates in a
/// bucket, which make more calls when they are late.
const CROWDS: &[&str] = &[
    "tenure-cli/fence_accident",
    "tenure-cli/run_contention_bucket",
    "tenure-cli/run_contention_google",
    "tenure-cli/run_contention_postgres",
    "tenure-cli/run_contention_redis",
    "tenure-cli/run_slots_bucket",
    "tenure-object/gauntlet_fake_gcs",
    "tenure-postgres/gauntlet",
    "tenure-redis/gauntlet",
];

/// The longest crowds: the last to start would run alone for most of its time.
const EARLY: &[&str] =
    &["tenure-cli/run_contention_bucket", "tenure-postgres/gauntlet", "tenure-redis/gauntlet"];

/// Crowds, gauntlets and the longest suites: they take minutes, and daily work omits them.
const LONG: &[&str] = &[
    "tenure-cli/elect_contention",
    "tenure-cli/fence_accident",
    "tenure-cli/run_contention",
    "tenure-cli/run_slots",
    "tenure-conformance/broken_stores",
    "tenure-conformance/file",
    "tenure-object/azurite",
    "tenure-object/fake_gcs",
    "tenure-object/gauntlet",
    "tenure-object/minio",
    "tenure-object/seaweedfs",
    "tenure-postgres/gauntlet",
    "tenure-redis/gauntlet",
];

/// The first match counts. Each server of a store has its own line, and so does the command on that store.
const STORES: &[(&str, &[&str])] = &[
    ("az on Azurite", &["tenure-object/azur", "tenure-object/gauntlet_azurite"]),
    (
        "gs on fake-gcs-server",
        &["tenure-object/fake_gcs", "tenure-object/gauntlet_fake_gcs", "tenure-object/google"],
    ),
    ("fences", &["tenure-object/fenced", "tenure-postgres/fence", "tenure-redis/fence", "tenure-sqlite/"]),
    ("postgres", &["tenure-postgres/"]),
    ("redis", &["tenure-redis/"]),
    ("redis, by the command", &["tenure-cli/redis", "tenure-cli/run_contention_redis"]),
    ("s3 on SeaweedFS", &["tenure-object/seaweedfs"]),
    ("s3 on MinIO", &["tenure-object/"]),
    ("az, by the command", &["tenure-cli/container", "tenure-cli/run_contention_container"]),
    ("gs, by the command", &["tenure-cli/google", "tenure-cli/run_contention_google"]),
    ("postgres, by the command", &["tenure-cli/postgres", "tenure-cli/run_contention_postgres"]),
    ("s3, by the command", &["tenure-cli/bucket", "tenure-cli/run_contention_bucket"]),
    ("file", &["tenure/file_", "tenure-conformance/file", "tenure-cli/run_contention"]),
    ("memory", &["tenure-conformance/memory"]),
];

/// Budget for the tests of one store, in seconds. The databases need it: each is tested with two kinds of servers, which are
/// PostgreSQL 15 and 18, or Redis and Valkey.
pub(crate) const BUDGET: f64 = 240.0;
