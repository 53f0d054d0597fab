//! Work that outlives its holder on this machine: contenders with `heed_tree` wait for it. Other contenders take the
//! lease by its ttl and report the work.

mod file_support;

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{
    AttemptReport, Coordinator, Denied, ErrorKind, Event, EventReport, GroupFull, Holder, Lease, Recorder,
    Request, Sighting, WitnessPart, WorkGuard,
};

use file_support::{Scratch, block_on};

/// Short, because tests wait until it has passed.
const TTL: Duration = Duration::from_millis(600);

/// Time limit of a contender that must not get the lease.
const LONG_ENOUGH: Duration = Duration::from_millis(1800);

/// Time limit of a contender that gets it, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// Records the events of leases.
#[derive(Debug, Default)]
struct Events(Mutex<Vec<Event>>);

impl Recorder for Events {
    fn attempt(&self, _: &AttemptReport) {}

    fn event(&self, report: &EventReport) {
        self.0.lock().unwrap().push(report.event.clone());
    }
}

impl Events {
    /// Reports of work that outlived its holder, in order: the sighting, and whether the contender took the lease.
    fn outlived(&self) -> Vec<(Sighting, bool)> {
        let told = self.0.lock().unwrap();
        let outlived = told.iter().filter_map(|event| match event {
            Event::Outlived { sighting, taken, .. } => Some((*sighting, *taken)),
            _ => None,
        });
        outlived.collect()
    }

    /// The same, once there are `count` of them: reports come from another thread.
    async fn until_outlived(&self, count: usize) -> Vec<(Sighting, bool)> {
        self.until(|_| self.outlived().len() >= count).await;
        self.outlived()
    }

    /// Waits for reports, which come from another thread, up to a limit.
    async fn until(&self, told: impl Fn(&[Event]) -> bool) {
        for _ in 0..10_000 {
            let events = self.0.lock().unwrap().clone();
            if told(&events) {
                break;
            }
            tokio::task::yield_now().await;
            file_support::sleep_ms(1);
        }
    }
}

/// A holder that never renews and whose work never ends, so that its record runs out without a vacate.
async fn late_holder(scratch: &Scratch) -> (Lease, WorkGuard) {
    let holder = Holder::new("late").unwrap();
    let late = Coordinator::builder().holder(holder).connect(scratch.store()).await.unwrap();
    let lease = late.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    let acting = lease.work_guard().unwrap();
    (lease, acting)
}

async fn contender(scratch: &Scratch) -> (Coordinator, Arc<Events>) {
    let events = Arc::new(Events::default());
    let recorder = Arc::clone(&events) as Arc<dyn Recorder>;
    (Coordinator::builder().recorder(recorder).connect(scratch.store()).await.unwrap(), events)
}

fn request(coordinator: &Coordinator) -> Request {
    coordinator.lease("k").unwrap().ttl(TTL).wait(PATIENCE)
}

fn tree_of(lease: &Lease) -> OwnedFd {
    lease.witness(WitnessPart::Tree).unwrap().expect("there is a witness")
}

#[test]
fn a_late_library_holder_is_replaced_after_its_ttl_and_that_is_reported() {
    block_on(async {
        for heeds in [false, true] {
            let scratch = Scratch::new("heed-late");
            let (late, _acting) = late_holder(&scratch).await;
            let (coordinator, events) = contender(&scratch).await;
            let wanted = if heeds { request(&coordinator).heed_tree(None) } else { request(&coordinator) };
            let lease = wanted.acquire().await.expect("its ttl has run out");
            assert!(lease.token() > late.token());
            let told = events.until_outlived(1).await;
            assert_eq!(told.len(), 1, "{told:?}");
            let (sighting, taken) = told[0];
            assert!(sighting.guards_locked && !sighting.tree_locked && taken, "heeds: {heeds}, {sighting:?}");
        }
    });
}

#[test]
fn a_contender_without_the_option_takes_the_lease_under_a_live_tree_and_reports_it() {
    block_on(async {
        let scratch = Scratch::new("heed-not");
        let (late, _acting) = late_holder(&scratch).await;
        let _tree = tree_of(&late);
        let (coordinator, events) = contender(&scratch).await;
        let lease = request(&coordinator).acquire().await.expect("its ttl has run out");
        assert!(lease.token() > late.token());
        let told = events.until_outlived(1).await;
        assert!(matches!(told[..], [(Sighting { tree_locked: true, .. }, true)]), "{told:?}");
    });
}

#[test]
fn a_contender_that_heeds_the_tree_waits_for_the_tree_and_not_for_its_guards() {
    block_on(async {
        let scratch = Scratch::new("heed-tree");
        let (late, _acting) = late_holder(&scratch).await;
        let tree = tree_of(&late);
        let (coordinator, events) = contender(&scratch).await;
        let denied = request(&coordinator).heed_tree(None).wait(LONG_ENOUGH).acquire().await.unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::Held, "{denied}");
        let token = format!("was held by late (token {}) and has run out", late.token());
        for words in [&*token, "a process of its command is still alive", "Stop it, or wait until it ends"] {
            assert!(denied.to_string().contains(words), "{denied} lacks {words:?}");
        }
        let once = request(&coordinator).heed_tree(None).try_acquire().await.unwrap_err();
        assert_eq!((once.kind(), once.to_string()), (ErrorKind::Held, denied.to_string()));
        let told = events.until_outlived(2).await;
        assert!(told.iter().all(|(sighting, taken)| sighting.tree_locked && !taken), "{told:?}");
        // Only the tree's part is freed: the holder is alive and late.
        let waiting = request(&coordinator).heed_tree(None).acquire();
        let (lease, ()) = tokio::join!(waiting, async {
            events.until_outlived(3).await;
            drop(tree);
        });
        assert!(lease.expect("the tree has ended").token() > late.token());
    });
}

#[test]
fn after_the_limit_the_lease_is_taken_under_a_live_tree_and_that_is_reported() {
    block_on(async {
        let scratch = Scratch::new("heed-limit");
        let (late, _acting) = late_holder(&scratch).await;
        let _tree = tree_of(&late);
        let (coordinator, events) = contender(&scratch).await;
        let lease = request(&coordinator).heed_tree(Some(TTL)).acquire().await.expect("the limit is over");
        assert!(lease.token() > late.token());
        let taken: Vec<_> = events.until_outlived(2).await.into_iter().map(|(_, taken)| taken).collect();
        assert_eq!(taken, [false, true], "first that it waits, and then that it goes on");
    });
}

#[test]
fn after_the_limit_a_slot_is_taken_under_a_live_tree_and_a_full_group_names_it_until_then() {
    block_on(async {
        for size in [1, 2] {
            let scratch = Scratch::new("heed-slots");
            let late = Coordinator::builder().holder(Holder::new("late").unwrap());
            let late = late.connect(scratch.store()).await.unwrap();
            let mut held = Vec::new();
            for _ in 0..size {
                let slot = late.slots("g", size).unwrap().ttl(TTL).manual().acquire().await.unwrap();
                let acting = slot.work_guard().unwrap();
                held.push((tree_of(&slot), acting, slot));
            }
            let (coordinator, events) = contender(&scratch).await;
            let slots = coordinator.slots("g", size).unwrap().ttl(TTL).wait(PATIENCE);
            let waited = slots.clone().heed_tree(None).wait(LONG_ENOUGH).acquire().await.unwrap_err();
            let full = GroupFull::of(&waited).unwrap_or_else(|| panic!("{waited}"));
            let indexes: Vec<_> = full.holders.iter().map(|held| u32::from(held.index)).collect();
            assert_eq!(indexes, Vec::from_iter(0..size), "{waited}");
            assert!(full.holders.iter().all(|held| held.remaining.at_most.is_zero()), "{waited}");

            let slot = slots.heed_tree(Some(TTL)).acquire().await.expect("the limit is over");
            let former = held.iter().find(|(_, _, held)| held.index() == slot.index()).unwrap();
            assert!(slot.token() > former.2.token());
            events.until(|_| events.outlived().last().is_some_and(|(_, taken)| *taken)).await;
            assert!(events.outlived().last().unwrap().1, "that it goes on is reported");
        }
    });
}

#[test]
fn a_contender_that_steals_at_once_does_not_wait_for_the_tree() {
    block_on(async {
        let scratch = Scratch::new("heed-now");
        let (late, _acting) = late_holder(&scratch).await;
        let _tree = tree_of(&late);
        let (coordinator, _) = contender(&scratch).await;
        assert_eq!(late.lost().await, tenure::Lost::Expired);
        let lease = request(&coordinator).heed_tree(None).take_now("hurry").acquire().await.unwrap();
        assert!(lease.token() > late.token());
    });
}

#[test]
fn survivors_are_the_processes_that_have_the_witness_open_with_their_command_lines() {
    block_on(async {
        let scratch = Scratch::new("survivors");
        let (late, _acting) = late_holder(&scratch).await;
        let (coordinator, _) = contender(&scratch).await;
        let record = coordinator.record("k").await.unwrap().expect("there is a record");
        let alone = coordinator.survivors(&record).await;
        assert!(alone.guards && !alone.tree && alone.processes.is_empty(), "{alone:?}");
        let tree = tree_of(&late);
        // The child has the witness open as its standard input.
        let mut child = Command::new("sleep").arg("31").stdin(Stdio::from(tree)).spawn().unwrap();
        let seen = coordinator.survivors(&record).await;
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.guards && seen.tree, "{seen:?}");
        let [survivor] = &seen.processes[..] else { panic!("{seen:?}") };
        assert_eq!((survivor.pid, &*survivor.command), (child.id(), "sleep 31"));
        let after = coordinator.survivors(&record).await;
        assert!(!after.tree && after.processes.is_empty(), "{after:?}");
    });
}

#[test]
fn a_denial_for_running_work_carries_the_sighting() {
    block_on(async {
        let scratch = Scratch::new("heed-event");
        let (late, _acting) = late_holder(&scratch).await;
        let _tree = tree_of(&late);
        let (coordinator, events) = contender(&scratch).await;
        assert_eq!(late.lost().await, tenure::Lost::Expired);
        let _ = request(&coordinator).heed_tree(None).wait(LONG_ENOUGH).acquire().await.unwrap_err();
        let carries = |event: &Event| {
            matches!(event, Event::Denied(Denied::Outlived { record, sighting })
                if record.token == late.token() && sighting.tree_locked && sighting.guards_locked)
        };
        events.until(|told| told.iter().any(carries)).await;
        let told = events.0.lock().unwrap();
        assert!(told.iter().any(carries), "{told:?}");
    });
}
