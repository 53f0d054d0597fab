//! Servers that accept ETags in only one form: the URL must say which.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure::store::Memory;
use tenure_conformance::broken::{Broken, Lie};
use tenure_probe::{Fitness, Plan, Probe, ProbeError, Qualification, Taken};
use tenure_store::{
    BoxFuture, BoxStream, Conflict, Expect, Guarantees, Identity, Key, Prefix, Put, Reading, Scratch, Store,
    StoreError, Write,
};

/// DigitalOcean Spaces matches an ETag only without its quotes, and answers 412 to every other replace.
#[derive(Debug)]
struct Picky {
    memory: Memory,
    bare: bool,
}

impl Store for Picky {
    fn guarantees(&self) -> Guarantees {
        self.memory.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        self.memory.get(key)
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> BoxFuture<'a, Result<Put, StoreError>> {
        match write.expect {
            Expect::Version(_) if !self.bare => Box::pin(async { Ok(Put::Conflict(Conflict)) }),
            _ => self.memory.write(key, write),
        }
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.memory.list(prefix)
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        self.memory.scratch()
    }

    fn identity(&self) -> Identity {
        self.memory.identity()
    }
}

impl fmt::Display for Picky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("picky:")
    }
}

async fn qualify(used: Arc<dyn Store>, other: Arc<dyn Store>, other_is_bare: bool) -> Qualification {
    let plan = Plan::default().racers(4).unwrap().rounds(1).unwrap().samples(10).unwrap();
    let probe = Probe::open(plan, 7, || Ok::<_, ProbeError>(Arc::clone(&used))).unwrap();
    let probe = probe.with_other_etags(other, other_is_bare);
    let found = probe.run(&|_| ()).await.unwrap();
    assert_eq!(probe.clean_up(Duration::from_secs(60)).await.left, 0);
    found
}

fn picky(memory: &Memory, bare: bool) -> Arc<dyn Store> {
    let memory = memory.clone();
    Arc::new(Picky { memory, bare })
}

#[tokio::test]
async fn with_the_wrong_form_it_is_refused_and_the_first_reason_is_what_to_write() {
    let memory = Memory::builder().declare(|guarantees| guarantees.watch = false).build();
    let found = qualify(picky(&memory, false), picky(&memory, true), true).await;
    let quoting = found.quoting.unwrap();
    assert_eq!((quoting.quoted, quoting.bare), (Taken::NeverMatches, Taken::Compared));
    let Fitness::Refused(reasons) = &found.fitness else { panic!("{}", found.fitness) };
    assert_eq!(reasons[0], "ETags work without quotes alone: write etags=bare in the URL");
}

#[tokio::test]
async fn with_the_right_form_it_is_fit() {
    let memory = Memory::builder().declare(|guarantees| guarantees.watch = false).build();
    let found = qualify(picky(&memory, true), picky(&memory, false), false).await;
    assert_eq!(found.fitness, Fitness::Fit);
    let sentence = found.quoting.unwrap().sentence();
    assert_eq!(sentence, "ETags work without quotes, as this URL has them, and not with quotes");
}

#[tokio::test]
async fn an_ignored_form_is_reported() {
    let other: Arc<dyn Store> = Arc::new(Broken::lying(Lie::IgnoresReplace));
    let found = qualify(Arc::new(Memory::new()), other, true).await;
    assert_eq!(found.fitness, Fitness::Fit);
    assert_eq!(found.quoting.unwrap().bare, Taken::Ignored);
}
