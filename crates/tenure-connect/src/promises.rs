use std::time::Duration;

use tenure::record::RECORD_MAX;
use tenure_store::{Guarantees, Reach, Store, StoreClock};

/// What a store promises, for people: one row for each primitive and guarantee, in words.
///
/// It is the only place that has these words: the command shows them, and the README's table of stores is made of them.
///
/// ```
/// use tenure::store::Memory;
/// use tenure_connect::Promises;
///
/// let rows = Promises::of(&Memory::new()).rows();
/// let reach = rows.iter().find(|row| row.name == "reach").unwrap();
/// assert_eq!(reach.answer, "one process");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promises {
    /// What it guarantees.
    pub guarantees: Guarantees,
    /// True if there can be witnesses on this machine: in the store's folder, or in one of the machine.
    pub witness: bool,
    /// Whether an operator may remove records from it.
    pub removal: bool,
    /// Whether it is there already. If not, this is what it would promise.
    pub is_there: bool,
}

/// One primitive or guarantee of a store, and what is promised of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promise {
    /// What it is called by programs, such as `atomic_create`. It does not change.
    pub name: &'static str,
    /// What it is called by people.
    pub title: &'static str,
    /// What is promised, for programs.
    pub value: PromiseValue,
    /// What is promised, in a word or two.
    pub answer: String,
    /// What that means for whoever uses leases.
    pub means: &'static str,
}

/// What is promised, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromiseValue {
    /// It is promised, or not.
    Flag(bool),
    /// One of a few words.
    Word(&'static str),
    /// A number, in the unit that the name says; `None` if there is no promise.
    Number(Option<u64>),
}

impl Promises {
    /// What a store promises that is open.
    pub fn of(store: &dyn Store) -> Self {
        Self {
            guarantees: store.guarantees(),
            witness: store.witness_folder().is_some() || store.guarantees().reach >= Reach::Machine,
            removal: store.administration().is_some(),
            is_there: true,
        }
    }

    /// What a folder promises that is not there yet: on a local file system, or on one that was accepted by name.
    #[cfg(feature = "file")]
    pub fn of_a_folder(local: bool) -> Self {
        let guarantees = tenure::store::file::guarantees(local);
        Self { guarantees, witness: true, removal: true, is_there: false }
    }

    /// The rows, in the order in which they matter.
    pub fn rows(&self) -> Vec<Promise> {
        vec![
            self.atomic_create(),
            self.atomic_replace(),
            self.linearizable_reads(),
            self.keeps_acknowledged(),
            self.unique_versions(),
            self.reach(),
            self.clock(),
            self.watch(),
            self.witness(),
            self.removal(),
            self.write_interval(),
            self.value_max(),
        ]
    }

    fn atomic_create(&self) -> Promise {
        let promised = self.guarantees.atomic_create;
        flag("atomic_create", "atomic create", promised).meaning(match promised {
            true => "of any number who make a record at the same moment, one does",
            false => "leases are refused: two could make the same record",
        })
    }

    fn atomic_replace(&self) -> Promise {
        let promised = self.guarantees.atomic_replace;
        flag("atomic_replace", "atomic replace", promised).meaning(match promised {
            true => "of any number who want a lease at the same moment, one is granted",
            false => "leases are refused: two could be granted",
        })
    }

    fn linearizable_reads(&self) -> Promise {
        let promised = self.guarantees.linearizable_reads;
        flag("linearizable_reads", "linearizable reads", promised).meaning(match promised {
            true => "a read shows every write that was answered before it was sent",
            false => "leases are refused: somebody could act on what is over",
        })
    }

    fn keeps_acknowledged(&self) -> Promise {
        let promised = self.guarantees.keeps_acknowledged;
        let mut row = flag("keeps_acknowledged", "keeps acknowledged writes", promised);
        let process = self.guarantees.reach == Reach::Process;
        if promised && process {
            row.answer.push_str(", while the process lives");
        }
        row.meaning(match promised {
            true if process => "what was answered stays until the process ends, with all who use it",
            true => "what was answered stays, across crashes and restarts",
            false => "leases are refused: a grant could be forgotten and given again",
        })
    }

    fn unique_versions(&self) -> Promise {
        let promised = self.guarantees.unique_versions;
        flag("unique_versions", "unique versions", promised).meaning(match promised {
            true => "no two writes of a record have the same version",
            false => "equal bytes may have an equal version; every write of a lease has other bytes",
        })
    }

    fn reach(&self) -> Promise {
        let (value, means) = match self.guarantees.reach {
            Reach::Nothing => ("nothing", "leases are refused: nobody is promised to see them"),
            Reach::Process => ("process", "leases hold between the tasks and threads of one process"),
            Reach::Machine => {
                ("machine", "leases hold between all processes of one machine, and not beyond it")
            }
            Reach::Network => ("network", "leases hold between any number of machines"),
        };
        word("reach", "reach", value, self.guarantees.reach.to_string()).meaning(means)
    }

    fn clock(&self) -> Promise {
        let (value, answer, means) = match self.guarantees.clock {
            StoreClock::Nothing => (
                "nothing",
                "none",
                "tokens grow as long as the record is there, and whoever waits counts itself",
            ),
            StoreClock::Floors => (
                "floors",
                "token floors",
                "tokens grow though a record is deleted; whoever waits counts itself",
            ),
            StoreClock::Ages => (
                "ages",
                "token floors and ages",
                "tokens grow though a record is deleted; one look tells what has run out",
            ),
        };
        word("clock", "clock", value, answer.to_owned()).meaning(means)
    }

    fn watch(&self) -> Promise {
        let promised = self.guarantees.watch;
        flag("watch", "watch", promised).meaning(match promised {
            true => "whoever waits is woken when a lease is let go",
            false => "whoever waits looks again from time to time, and notices a release later",
        })
    }

    fn witness(&self) -> Promise {
        flag("witness", "witness", self.witness).meaning(match self.witness {
            true => "the lease of a holder that died on this machine is free at once",
            false => "the lease of a holder that died is free after its ttl",
        })
    }

    fn removal(&self) -> Promise {
        flag("removal", "removal", self.removal).meaning(match self.removal {
            true => "tenure forget removes vacant records, and tokens grow all the same",
            false => "the record of a lease stays for ever",
        })
    }

    fn write_interval(&self) -> Promise {
        let (value, answer, means) = match self.guarantees.write_interval {
            Duration::MAX => {
                (None, "not promised".to_owned(), "leases are refused: nobody knows how often to renew")
            }
            Duration::ZERO => {
                (Some(0), "none".to_owned(), "a lease may be renewed as often as its ttl asks for")
            }
            interval => {
                let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
                (Some(millis), format!("{interval:?}"), "a ttl whose renewals would come faster is refused")
            }
        };
        number("write_interval_ms", "shortest write interval", value, answer).meaning(means)
    }

    fn value_max(&self) -> Promise {
        let max = self.guarantees.value_max;
        number("value_max_bytes", "largest value", Some(max as u64), size(max)).meaning(
            match max >= RECORD_MAX {
                true => "every record fits",
                false => "leases are refused: not every record fits",
            },
        )
    }
}

impl Promise {
    fn meaning(mut self, means: &'static str) -> Self {
        self.means = means;
        self
    }
}

fn flag(name: &'static str, title: &'static str, promised: bool) -> Promise {
    let answer = if promised { "yes" } else { "no" }.to_owned();
    Promise { name, title, value: PromiseValue::Flag(promised), answer, means: "" }
}

fn word(name: &'static str, title: &'static str, value: &'static str, answer: String) -> Promise {
    Promise { name, title, value: PromiseValue::Word(value), answer, means: "" }
}

fn number(name: &'static str, title: &'static str, value: Option<u64>, answer: String) -> Promise {
    Promise { name, title, value: PromiseValue::Number(value), answer, means: "" }
}

/// Bytes as people write them.
fn size(bytes: usize) -> String {
    const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}
