use std::time::Duration;

use serde_json::{Value, json};
use tenure::Error;
use tenure::record::RECORD_MAX;
use tenure_connect::StoreUrl;
use tenure_store::{Guarantees, Reach, StoreClock};

/// The promises of a store in words: one row for each primitive and guarantee.
///
/// This is the only place with these words: `tenure store guarantees` prints them, and `docs/stores/guarantees.md` has
/// a table of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promises {
    pub(crate) guarantees: Guarantees,
    /// True if an operator may remove records from it.
    removal: bool,
    /// True if the store exists. If not, these are the promises that it would make.
    pub(crate) is_there: bool,
}

/// One primitive or guarantee of a store, and its promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
    /// Its name in JSON, such as `atomic_create`. It does not change.
    pub(crate) name: &'static str,
    /// Its name in text.
    pub(crate) title: &'static str,
    /// The promise in JSON.
    pub(crate) value: Value,
    /// The promise in a word or two.
    pub(crate) answer: String,
    /// The meaning of the promise for users of leases.
    pub(crate) means: &'static str,
}

impl Promises {
    /// The promises of a store, or those that it would make once it exists. Creates and changes nothing.
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, Error> {
        Ok(Self { guarantees: url.guarantees()?, removal: url.has_removal(), is_there: url.is_there()? })
    }

    /// The rows, in order of importance.
    pub(crate) fn rows(&self) -> Vec<Promise> {
        let of = &self.guarantees;
        vec![
            flag(
                ("atomic_create", "atomic create"),
                of.atomic_create,
                "of any number of concurrent creates of a record, exactly one succeeds",
                "leases are refused: two contenders could create the same record",
            ),
            flag(
                ("atomic_replace", "atomic replace"),
                of.atomic_replace,
                "of any number of concurrent contenders, exactly one is granted",
                "leases are refused: two contenders could be granted",
            ),
            flag(
                ("linearizable_reads", "linearizable reads"),
                of.linearizable_reads,
                "a read shows every write that was acknowledged before the read was sent",
                "leases are refused: a former holder could act",
            ),
            self.keeps_acknowledged(),
            flag(
                ("unique_versions", "unique versions"),
                of.unique_versions,
                "no two writes of a record have the same version",
                "equal bytes may have an equal version; every write of a lease has different bytes",
            ),
            self.reach(),
            self.clock(),
            flag(
                ("watch", "watch"),
                of.watch,
                "the store wakes a contender when a lease is released",
                "contenders poll, and notice a release later",
            ),
            flag(
                ("witness", "witness"),
                // In the directory of the store, or in one of the machine.
                of.reach >= Reach::Machine,
                "the lease of a holder that died on this machine is free at once",
                "the lease of a holder that died is free after its ttl",
            ),
            flag(
                ("removal", "removal"),
                self.removal,
                "tenure forget can remove vacant records; tokens still grow",
                "the record of a lease is permanent",
            ),
            self.write_interval(),
            self.ttl_max(),
            self.value_max(),
        ]
    }

    fn keeps_acknowledged(&self) -> Promise {
        let in_the_process = self.guarantees.reach == Reach::Process;
        let kept = if in_the_process {
            "acknowledged writes last until the process ends, with all its users"
        } else {
            "acknowledged writes survive crashes and restarts"
        };
        let mut row = flag(
            ("keeps_acknowledged", "keeps acknowledged writes"),
            self.guarantees.keeps_acknowledged,
            kept,
            "leases are refused: a grant could be forgotten and given again",
        );
        let may_lose = !self.guarantees.keeps_acknowledged && self.guarantees.missing_for_leases().is_empty();
        if let Some(accepted) = self.guarantees.accepted_loss.filter(|_| may_lose) {
            row.answer = format!("no, accepted by {accepted}");
            row.means = if self.guarantees.allows_plain_keys() {
                "after a loss two may hold one lease, and changes of plain keys may be lost"
            } else {
                "after a loss two may hold one lease; a restart has a quarantine; plain keys are refused"
            };
        } else if may_lose {
            row.answer = "no, but a quarantine".to_owned();
            row.means = "after a restart nothing is granted for the longest ttl; plain keys are refused";
        }
        if self.guarantees.keeps_acknowledged && in_the_process {
            row.answer.push_str(", while the process lives");
        } else if self.guarantees.keeps_acknowledged && self.guarantees.lost_at_reboot {
            row.answer.push_str(", until a reboot");
            row.means =
                "in memory: a reboot loses every record and ends every holder; tokens then follow the clock";
        }
        row
    }

    fn reach(&self) -> Promise {
        let (value, means) = match self.guarantees.reach {
            Reach::Nothing => ("nothing", "leases are refused: no other process is sure to see them"),
            Reach::Process => ("process", "leases hold between the tasks and threads of one process"),
            Reach::Machine => {
                ("machine", "leases hold between all processes of one machine, and not beyond it")
            }
            Reach::Network => ("network", "leases hold between any number of machines"),
            _ => {
                ("unknown", "this version of tenure does not know how far leases reach: count on one process")
            }
        };
        row(("reach", "reach"), json!(value), self.guarantees.reach.to_string(), means)
    }

    fn clock(&self) -> Promise {
        let (value, answer, means) = match self.guarantees.clock {
            StoreClock::Nothing => (
                "nothing",
                "none",
                "tokens grow as long as the record exists; a contender measures ages itself",
            ),
            StoreClock::Floors => (
                "floors",
                "token floors",
                "tokens grow even if a record is deleted; a contender measures ages itself",
            ),
            StoreClock::Ages => (
                "ages",
                "token floors and ages",
                "tokens grow even if a record is deleted; one read shows whether a lease has run out",
            ),
            _ => (
                "unknown",
                "unknown",
                "this version of tenure does not know this clock; a contender measures ages \
            itself",
            ),
        };
        row(("clock", "clock"), json!(value), answer.to_owned(), means)
    }

    fn write_interval(&self) -> Promise {
        let (value, answer, means) = match self.guarantees.write_interval {
            Duration::MAX => {
                (None, "not promised".to_owned(), "leases are refused: the safe renewal rate is not known")
            }
            Duration::ZERO => {
                (Some(0), "none".to_owned(), "a lease may be renewed as often as its ttl asks for")
            }
            interval => {
                let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
                (Some(millis), format!("{interval:?}"), "a ttl whose renewals would come faster is refused")
            }
        };
        row(("write_interval_ms", "shortest write interval"), json!(value), answer, means)
    }

    fn ttl_max(&self) -> Promise {
        let (value, answer, means) = match self.guarantees.ttl_max {
            None => (None, "no limit".to_owned(), "the store allows every ttl"),
            Some(max) => {
                let millis = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
                (Some(millis), format!("{max:?}"), "a longer ttl is refused: it would outlast the quarantine")
            }
        };
        row(("ttl_max_ms", "longest ttl"), json!(value), answer, means)
    }

    fn value_max(&self) -> Promise {
        let max = self.guarantees.value_max;
        let means =
            if max >= RECORD_MAX { "every record fits" } else { "leases are refused: not every record fits" };
        row(("value_max_bytes", "largest value"), json!(max), size(max), means)
    }
}

/// A row whose answer is yes or no, with the meaning of either.
fn flag(names: Names, promised: bool, yes: &'static str, no: &'static str) -> Promise {
    let (answer, means) = if promised { ("yes", yes) } else { ("no", no) };
    row(names, json!(promised), answer.to_owned(), means)
}

fn row((name, title): Names, value: Value, answer: String, means: &'static str) -> Promise {
    Promise { name, title, value, answer, means }
}

/// The names of a row in JSON and in text.
type Names = (&'static str, &'static str);

/// A number of bytes in a readable form.
fn size(bytes: usize) -> String {
    const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tenure::store::{File, Memory};
    use tenure_object::{Azure, Google, S3};
    use tenure_store::Store;
    use tenure_testkit::{FileSystem, Mounted};

    use super::*;

    const BEGIN: &str = "<!-- stores: begin. Made by src/promises.rs of tenure-cli: UPDATE_DOCS=1 cargo test -p \
    tenure-cli promises -->\n";
    const END: &str = "<!-- stores: end -->\n";

    const CONTAINER: &str = "az://container/prefix?account=acme";
    const BUCKET: &str = "s3://bucket/prefix?region=eu-central-1";
    const GOOGLE_BUCKET: &str = "gs://bucket/prefix";

    fn of(url: &str) -> Promises {
        Promises::of(&url.parse().unwrap()).unwrap()
    }

    /// The promises of an open store.
    fn kept_by(store: &dyn Store) -> Promises {
        Promises { guarantees: store.guarantees(), removal: store.administration().is_some(), is_there: true }
    }

    /// The promises of a directory: all that memory promises, for one machine, and fewer on a file system that is not
    /// known to be local. Two tests below compare it with real directories.
    fn of_a_directory(local: bool) -> Promises {
        let mut guarantees = Memory::new().guarantees();
        (guarantees.reach, guarantees.value_max) = (Reach::Machine, File::VALUE_MAX);
        if !local {
            (guarantees.clock, guarantees.watch) = (StoreClock::Floors, false);
        }
        Promises { guarantees, removal: true, is_there: true }
    }

    /// One column for each store that can be opened, in the order of the documentation.
    fn columns() -> [(&'static str, Promises); 8] {
        [
            ("[`file:///path`](file.md)", of_a_directory(true)),
            ("`file:///path?accept=nfs`, on one machine", of_a_directory(false)),
            ("[`s3://bucket/prefix`](s3.md)", of(BUCKET)),
            ("[`az://container/prefix`](azure.md)", of(CONTAINER)),
            ("[`gs://bucket/prefix`](google.md)", of(GOOGLE_BUCKET)),
            ("[`redis://host`](redis.md)", of("redis://host")),
            ("[`postgres://role@host/database`](postgres.md)", of("postgres://role@host/database")),
            ("`memory:`, in the library", kept_by(&Memory::new())),
        ]
    }

    fn table() -> String {
        let stores = columns();
        let names: Vec<_> = stores.iter().map(|(name, _)| *name).collect();
        let rows: Vec<_> = stores.iter().map(|(_, promises)| promises.rows()).collect();
        let mut text = format!("| | {} |\n|{}\n", names.join(" | "), " --- |".repeat(stores.len() + 1));
        for (at, row) in rows[0].iter().enumerate() {
            let answers: Vec<_> = rows.iter().map(|rows| rows[at].answer.as_str()).collect();
            text.push_str(&format!("| {} | {} |\n", row.title, answers.join(" | ")));
        }
        text
    }

    #[test]
    fn the_table_of_guarantees_in_the_docs_matches_the_promises_of_the_stores() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/stores/guarantees.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the page has a mark where the table begins");
        let (there, after) = rest.split_once(END).expect("the page has a mark where the table ends");
        let expected = format!("\n{}\n", table());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            return std::fs::write(&path, [before, BEGIN, &expected, END, after].concat()).unwrap();
        }
        assert_eq!(there, expected, "run it once more with UPDATE_DOCS=1, and review the difference");
    }

    #[test]
    fn every_guarantee_has_a_unique_name_an_answer_and_a_meaning_in_every_case() {
        let nothing = Promises { guarantees: Guarantees::default(), removal: false, is_there: true };
        for promises in columns().map(|(_, promises)| promises).into_iter().chain([nothing]) {
            let rows = promises.rows();
            for row in &rows {
                assert!(!row.answer.is_empty() && !row.means.is_empty(), "{row:?}");
                assert!(row.means.chars().count() <= 90 && !row.means.ends_with('.'), "{row:?}");
                assert_eq!(rows.iter().filter(|other| other.name == row.name).count(), 1, "{row:?}");
            }
        }
        let refused =
            nothing.rows().into_iter().filter(|row| row.means.starts_with("leases are refused")).count();
        assert_eq!(refused, nothing.guarantees.missing_for_leases().len() + 1, "and the size of a value");
    }

    #[test]
    fn a_local_directory_keeps_the_promises_of_its_column_before_and_after_its_creation() {
        let path = std::env::temp_dir().join(format!("tenure-promises-{}", std::process::id()));
        let url = File::url_of(&path);
        let before = of(&url);
        assert!(!before.is_there && !path.exists(), "to ask makes nothing");
        let store = File::open(&path).unwrap();
        let after = of(&url);
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!((after, before), (kept_by(&store), Promises { is_there: false, ..after }));
        let mut expected = of_a_directory(true);
        // Temporary files are in memory on some machines.
        expected.guarantees.lost_at_reboot = after.guarantees.lost_at_reboot;
        assert_eq!(after, expected);
    }

    #[test]
    fn a_directory_in_memory_says_that_a_reboot_loses_its_records_and_one_on_a_disk_does_not() {
        let row = |file_system| {
            let mounted = Mounted::new(file_system)?;
            let url = File::url_of(&mounted.path().join("leases"));
            let before = of(&url);
            url.parse::<StoreUrl>().unwrap().open().unwrap();
            let after = of(&url);
            assert_eq!(before.rows(), after.rows(), "the same before its creation and afterwards");
            assert!(after.guarantees.missing_for_leases().is_empty(), "its holders end with the reboot");
            after.rows().into_iter().find(|row| row.name == "keeps_acknowledged")
        };
        let Some(in_memory) = row(FileSystem::Tmpfs) else { return };
        assert_eq!((in_memory.answer.as_str(), &in_memory.value), ("yes, until a reboot", &json!(true)));
        assert!(
            in_memory.means.contains("a reboot loses every record and ends every holder"),
            "{in_memory:?}"
        );
        assert!(in_memory.means.chars().count() <= 90, "{in_memory:?}");
        let Some(on_a_disk) = row(FileSystem::Ext4) else { return };
        assert_eq!(on_a_disk.answer, "yes");
        assert!(on_a_disk.means.contains("survive crashes and restarts"), "{on_a_disk:?}");
    }

    #[test]
    fn a_directory_that_is_accepted_by_name_keeps_the_promises_of_its_column() {
        let Some(mounted) = Mounted::new(FileSystem::Bindfs) else { return };
        let path = mounted.path().join("leases");
        let url = format!("{}?accept=fuse", File::url_of(&path));
        let before = of(&url);
        let store = File::builder().accept_file_system("fuse").open(&path).unwrap();
        let after = of(&url);
        assert_eq!((after, before), (kept_by(&store), Promises { is_there: false, ..after }));
        assert_eq!(after, of_a_directory(false));
    }

    #[test]
    fn a_bucket_keeps_the_promises_of_its_column_which_need_no_credentials() {
        let store = S3::builder("bucket").prefix("prefix").region("eu-central-1").keys("id", "secret").open();
        assert_eq!(of(BUCKET), kept_by(&store.unwrap()));
        let google = Google::builder("bucket").prefix("prefix").token("token").open();
        assert_eq!(of(GOOGLE_BUCKET), kept_by(&google.unwrap()));
        let answer =
            |url: &str, name: &str| of(url).rows().into_iter().find(|row| row.name == name).unwrap().answer;
        let at_cloudflare = "s3://bucket/prefix?endpoint=https://x.r2.cloudflarestorage.com";
        assert_eq!(answer(at_cloudflare, "write_interval_ms"), "1.1s");
        assert_eq!(answer("s3://bucket?accept=server-clock", "clock"), "token floors and ages");
    }

    #[test]
    fn a_container_keeps_the_promises_of_its_column_which_need_no_credentials() {
        let store =
            Azure::builder("container").prefix("prefix").account("acme").access_key("aHVzaA==").open();
        assert_eq!(of(CONTAINER), kept_by(&store.unwrap()));
    }

    #[test]
    fn a_store_that_may_forget_says_how_leases_are_safe_on_it() {
        let mut guarantees = Memory::new().guarantees();
        (guarantees.keeps_acknowledged, guarantees.quarantine) = (false, true);
        guarantees.ttl_max = Some(Duration::from_secs(60));
        let rows = Promises { guarantees, removal: false, is_there: true }.rows();
        let answer = |name| rows.iter().find(|row| row.name == name).unwrap().answer.clone();
        assert_eq!(answer("keeps_acknowledged"), "no, but a quarantine");
        assert_eq!(answer("ttl_max_ms"), "60s");
        assert!(rows.iter().all(|row| row.means.chars().count() <= 90), "{rows:?}");
    }

    #[test]
    fn a_url_that_accepts_a_loss_promises_no_acknowledged_write_and_names_the_acceptance() {
        let row = |url: &str| {
            let mut rows = of(url).rows();
            assert!(of(url).guarantees.missing_for_leases().is_empty(), "{url}: leases are allowed");
            rows.retain(|row| row.name == "keeps_acknowledged");
            rows.remove(0)
        };
        for (url, answer) in [
            ("postgres://role@host/database?accept=fsync-off", "no, accepted by accept=fsync-off"),
            ("redis://host?accept=restart", "no, accepted by accept=restart"),
            ("redis://host?accept=failover", "no, accepted by accept=failover"),
            (
                "redis://host?accept=failover&accept=restart",
                "no, accepted by accept=restart and accept=failover",
            ),
            ("redis://host?accept=eviction", "no, accepted by accept=eviction"),
            ("redis://host?accept=unknown-settings", "no, accepted by accept=unknown-settings"),
        ] {
            let row = row(url);
            assert_eq!((row.answer.as_str(), &row.value), (answer, &json!(false)), "{url}");
            assert!(row.means.starts_with("after a loss two may hold one lease"), "{row:?}");
            assert!(row.means.chars().count() <= 90, "{row:?}");
        }
        assert_eq!(row("postgres://role@host/database?accept=server-clock").answer, "yes");
    }

    #[test]
    fn memory_keeps_the_promises_of_its_column_and_no_holder_has_a_witness_there() {
        let rows = kept_by(&Memory::new()).rows();
        let values = |name| rows.iter().find(|row| row.name == name).unwrap().value.clone();
        assert_eq!(
            ["reach", "witness", "removal"].map(values),
            [json!("process"), json!(false), json!(true)]
        );
        assert_eq!(Memory::new().identity().witness_directory, None);
    }
}
