//! Terms that no process keeps: the owner of the handle renews and releases them.

mod support;

use std::time::Duration;

use tenure::clock::ManualClock;
use tenure::record::End;
use tenure::store::Memory;
use tenure::store::memory::PutFault;
use tenure::{Coordinator, Drift, ErrorKind, Handle, Standing, Timing};

use support::{World, poll_times};

const TTL: Duration = Duration::from_secs(60);

async fn acquire(coordinator: &Coordinator) -> Handle {
    coordinator.lease("k").unwrap().ttl(TTL).acquire_handle().await.unwrap()
}

/// The handle as another process reads it.
fn copied(handle: &Handle) -> Handle {
    handle.reveal().parse().unwrap()
}

/// True if another contender would have to wait.
async fn is_held(world: &World) -> bool {
    let denied = world.process("b").await.lease("k").unwrap().ttl(TTL).try_acquire().await;
    match denied {
        Err(error) => error.kind() == ErrorKind::Held,
        Ok(lease) => {
            lease.release().await.unwrap();
            false
        }
    }
}

fn assert_lost<T: std::fmt::Debug>(answer: Result<T, tenure::Error>, why: &str) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert!(error.to_string().contains(why), "{error}");
    assert!(error.to_string().contains("lease k of a (token "), "{error}");
}

#[tokio::test]
async fn a_handle_goes_from_process_to_process_and_keeps_its_term() {
    let world = World::new();
    let handle = acquire(&world.process("a").await).await;
    world.pass(TTL / 2).await;
    let renewed = world.process("other").await.renew(&copied(&handle)).await.unwrap();
    assert_eq!((renewed.token(), renewed.holder().id()), (handle.token(), handle.holder().id()));
    world.pass(TTL / 2 + TTL / 10).await;
    assert!(is_held(&world).await, "the renewal counts");
    world.process("third").await.release(&copied(&renewed)).await.unwrap();
    let next = acquire(&world.process("b").await).await;
    assert!(next.token() > handle.token());
    let record = world.process("b").await.record("k").await.unwrap().unwrap();
    assert_eq!(record.history.last().unwrap().end, End::Released);
}

#[tokio::test]
async fn acquiring_by_handle_costs_the_same_and_renewing_and_releasing_one_read_more() {
    let world = World::new();
    let a = world.process("a").await;
    let before = world.memory.calls();
    let handle = acquire(&a).await;
    assert_eq!(world.calls_since(before), (1, 2));
    let (before, b) = (world.memory.calls(), world.process("b").await);
    let handle = b.renew(&handle).await.unwrap();
    assert_eq!(world.calls_since(before), (1, 1));
    let before = world.memory.calls();
    b.release(&handle).await.unwrap();
    assert_eq!(world.calls_since(before), (1, 1));
}

#[tokio::test]
async fn of_two_copies_of_a_handle_the_one_used_first_counts() {
    let world = World::new();
    let a = world.process("a").await;
    let handle = acquire(&a).await;
    let renewed = a.renew(&handle).await.unwrap();
    assert_lost(a.renew(&copied(&handle)).await, "its handle was renewed since");
    assert_lost(a.release(&copied(&handle)).await, "its handle was renewed since");
    assert!(is_held(&world).await, "the other one has it still");
    a.release(&renewed).await.unwrap();
    assert_lost(a.renew(&renewed).await, "it was released");
    assert_lost(a.release(&renewed).await, "it was released");
}

#[tokio::test]
async fn after_its_deadline_a_handle_is_not_renewed_even_without_another_grant() {
    let world = World::new();
    let a = world.process("a").await;
    let handle = acquire(&a).await;
    assert!(handle.remaining(&world.clock) > Duration::ZERO);
    world.pass(TTL - TTL / 200).await;
    assert_eq!(handle.remaining(&world.clock), Duration::ZERO);
    let writes = world.memory.calls();
    assert_lost(a.renew(&handle).await, "no renewal was confirmed before the deadline");
    assert_eq!(world.calls_since(writes).1, 0);
    // The release proves that no other contender held it.
    a.release(&handle).await.unwrap();
}

#[tokio::test]
async fn a_renewal_uses_the_drift_of_the_grant() {
    let world = World::new();
    let a = world.process("a").await;
    let drift = Drift::from_ppm(100_000).unwrap();
    let timing = Timing::builder(TTL).drift(drift).build().unwrap();
    let handle = a.lease("k").unwrap().timing(timing).acquire_handle().await.unwrap();
    assert_eq!(handle.remaining(&world.clock), TTL * 9 / 10);
    world.pass(TTL / 2).await;
    let renewed = a.renew(&copied(&handle)).await.unwrap();
    assert_eq!(renewed.remaining(&world.clock), TTL * 9 / 10);
    let kept = a.resume(&renewed).await.unwrap();
    assert_eq!(kept.remaining(), TTL * 9 / 10);
}

#[tokio::test]
async fn a_handle_of_another_boot_is_refused_and_can_still_be_released() {
    let world = World::new();
    let handle = acquire(&world.process("a").await).await;
    let rebooted = World { clock: ManualClock::new(), memory: world.memory.clone() };
    let b = rebooted.process("a").await;
    assert_lost(b.renew(&handle).await, "another boot");
    assert_lost(b.resume(&handle).await, "another boot");
    b.release(&handle).await.unwrap();
    assert!(!is_held(&rebooted).await);
}

#[tokio::test]
async fn a_deadline_beyond_the_ttl_is_on_another_clock_whatever_its_name() {
    let world = World::new();
    let a = world.process("a").await;
    world.pass(TTL * 10).await;
    let handle = acquire(&a).await;
    // The text of a handle from a machine that was rolled back by an hour: the same clock, at an earlier time.
    let text = edited(&handle, "deadline", |deadline| deadline + 3_600 * 1_000_000_000);
    assert_lost(a.renew(&text.parse().unwrap()).await, "another boot");
}

#[tokio::test]
async fn a_handle_is_valid_for_its_own_store_only() {
    let world = World::new();
    let handle = acquire(&world.process("a").await).await;
    let elsewhere =
        World { clock: world.clock.clone(), memory: Memory::builder().name("memory:other").build() };
    let b = elsewhere.process("b").await;
    for error in [b.renew(&handle).await.unwrap_err(), b.release(&handle).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("memory:other"), "{error}");
    }
}

#[tokio::test]
async fn a_handle_of_an_earlier_term_reports_the_current_holder() {
    let world = World::new();
    let a = world.process("a").await;
    let handle = acquire(&a).await;
    a.release(&handle).await.unwrap();
    let next = acquire(&world.process("b").await).await;
    let now = format!("b was granted it with token {}", next.token());
    assert_lost(a.renew(&handle).await, &now);
    assert_lost(a.release(&handle).await, &now);
    assert!(is_held(&world).await);
}

#[tokio::test]
async fn a_reader_of_the_record_has_no_handle() {
    let world = World::new();
    let a = world.process("a").await;
    let handle = acquire(&a).await;
    let forged = edited_text(&handle, "secret", |_| "A".repeat(43));
    let forged: Handle = forged.parse().unwrap();
    assert_eq!(a.renew(&forged).await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(a.release(&forged).await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(is_held(&world).await);
    let stored = world.memory.contents(&"k".parse().unwrap()).unwrap();
    let secret = payload(&handle)["secret"].as_str().unwrap().to_owned();
    assert!(!String::from_utf8_lossy(&stored).contains(&secret));
    assert!(!format!("{handle:?}").contains(&secret));
}

#[tokio::test]
async fn a_text_that_is_truncated_or_edited_is_no_handle_and_is_not_echoed() {
    let world = World::new();
    let text = acquire(&world.process("a").await).await.reveal();
    let cuts = (0..text.len()).map(|end| text[..end].to_owned());
    let edits = (8..text.len()).map(|at| {
        let other = if &text[at..=at] == "x" { "y" } else { "x" };
        format!("{}{other}{}", &text[..at], &text[at + 1..])
    });
    for wrong in
        cuts.chain(edits).chain([format!("{text}A"), format!(" {text}"), "\0".into(), "é".repeat(9_999)])
    {
        let error = wrong.parse::<Handle>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(wrong.len() < 30 || !error.to_string().contains(&wrong[8..20.min(wrong.len())]), "{error}");
    }
}

#[tokio::test]
async fn a_lost_answer_does_not_end_a_term_that_is_renewed_by_its_handle() {
    for fault in [PutFault::LoseAnswer, PutFault::LoseRequest, PutFault::ThrottleAfterApplying(None)] {
        let world = World::new();
        let a = world.process("a").await;
        let handle = acquire(&a).await;
        world.memory.faults().next_put(fault);
        let (renewed, ()) = tokio::join!(a.renew(&handle), world.pass(TTL / 2));
        a.renew(&renewed.unwrap()).await.unwrap();
    }
}

/// The owner of the handle believes until its deadline, whatever happens to the command that renews it.
#[tokio::test]
async fn a_renewal_dropped_at_any_poll_never_vacates_the_term() {
    let faults = [
        None,
        Some(PutFault::LoseAnswer),
        Some(PutFault::LoseRequest),
        Some(PutFault::Late),
        Some(PutFault::Hang),
        Some(PutFault::HangAfterApplying),
    ];
    for fault in faults {
        for polls in 0..5 {
            let world = World::new();
            let handle = acquire(&world.process("a").await).await;
            let renewing = world.process("a").await;
            if let Some(fault) = fault {
                world.memory.faults().next_put(fault);
            }
            if let Some(renewed) = poll_times(&world, renewing.renew(&handle), polls).await {
                renewed.unwrap();
            }
            world.memory.faults().deliver_late();
            let left = handle.remaining(&world.clock);
            world.pass(left).await;
            let standing = world.process("c").await.observe("k").await.unwrap().standing;
            assert!(matches!(standing, Standing::Held(_)), "{fault:?}, {polls} polls: {standing:?}");
        }
    }
}

/// No process keeps such a term. Without a handle, it would be held for a whole ttl without an owner.
#[tokio::test]
async fn an_acquire_dropped_at_any_poll_leaves_no_term_behind() {
    let faults = [None, Some(PutFault::LoseAnswer), Some(PutFault::LoseRequest), Some(PutFault::Late)];
    for fault in faults {
        for polls in 0..3 {
            let world = World::new();
            let a = world.process("a").await;
            let earlier = acquire(&a).await;
            a.release(&earlier).await.unwrap();
            if let Some(fault) = fault {
                world.memory.faults().next_put(fault);
            }
            let got = poll_times(&world, acquire(&a), polls).await;
            world.memory.faults().deliver_late();
            world.pass(TTL / 4).await;
            assert_eq!(is_held(&world).await, got.is_some(), "{fault:?}, {polls} polls");
        }
    }
}

#[tokio::test]
async fn an_outage_until_the_deadline_is_a_loss_and_vacates_nothing() {
    let world = World::new();
    let handle = acquire(&world.process("a").await).await;
    world.memory.faults().every_put(Some(PutFault::Hang));
    let a = world.process("a").await;
    let (renewed, ()) = tokio::join!(a.renew(&handle), world.pass(TTL));
    assert_eq!(renewed.unwrap_err().kind(), ErrorKind::Lost);
    let puts = world.memory.calls();
    world.memory.faults().clear();
    world.pass(TTL * 2).await;
    assert_eq!(world.calls_since(puts).1, 0, "the term is left to its ttl");
}

#[tokio::test]
async fn a_term_can_be_resumed_by_a_process_that_keeps_it() {
    let world = World::new();
    let handle = acquire(&world.process("a").await).await;
    let b = world.process("b").await;
    let lease = b.resume(&handle).await.unwrap();
    assert_eq!(lease.token(), handle.token());
    assert_eq!(lease.holder().id(), handle.holder().id());
    world.pass(TTL * 3).await;
    lease.check().unwrap();
    assert_lost(b.release(&handle).await, "its handle was renewed since");
    lease.release().await.unwrap();
    assert!(!is_held(&world).await);
}

#[tokio::test]
async fn the_owner_of_the_handle_of_a_revoked_term_learns_who_wants_it_and_releases() {
    let world = World::new();
    let a = world.process("a").await;
    let handle = acquire(&a).await;
    let b = world.process("b").await;
    let stealing = async {
        let stealing = b.lease("k").unwrap().ttl(TTL).revoke("b is the new main").acquire();
        stealing.await.unwrap()
    };
    let letting_go = async {
        world.settle().await;
        assert_lost(a.renew(&handle).await, "b takes it over: b is the new main");
        a.release(&handle).await.unwrap();
        world.pass(TTL / 2).await;
    };
    let (lease, ()) = tokio::join!(stealing, letting_go);
    assert!(lease.token() > handle.token());
    assert_lost(a.renew(&handle).await, "b takes it over: b is the new main");
}

#[tokio::test]
async fn a_lease_that_is_stolen_at_once_is_granted_at_once_and_its_holder_learns_of_it() {
    let world = World::new();
    let a = world.process("a").await;
    let held = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let b = world.process("b").await;
    let taken = b.lease("k").unwrap().ttl(TTL).take_now("a hangs").try_acquire().await.unwrap();
    assert!(taken.token() > held.token());
    let past = b.record("k").await.unwrap().unwrap().history.last().unwrap().clone();
    assert_eq!(past.token, held.token());
    assert_eq!(past.end, End::Revoked { by: "b".into(), because: "a hangs".into() });
    world.pass(TTL).await;
    let error = held.check().unwrap_err();
    assert!(error.to_string().contains("b takes it over: a hangs"), "{error}");
    taken.check().unwrap();
}

#[tokio::test]
async fn a_revoked_term_ends_as_revoked_even_if_its_holder_never_answers() {
    let world = World::new();
    let dead = acquire(&world.process("a").await).await;
    let b = world.process("b").await;
    let stealing = b.lease("k").unwrap().ttl(TTL).revoke("a is gone").acquire();
    let (lease, ()) = tokio::join!(stealing, world.pass(TTL * 2));
    let record = b.record("k").await.unwrap().unwrap();
    assert!(lease.unwrap().token() > dead.token());
    let end = &record.history.last().unwrap().end;
    assert_eq!(*end, End::Revoked { by: "b".into(), because: "a is gone".into() });
}

#[tokio::test]
async fn stealing_a_lease_needs_a_reason() {
    let world = World::new();
    let a = world.process("a").await;
    for reason in ["", "  ", "two\nlines", &"x".repeat(201)] {
        for request in [a.lease("k").unwrap().revoke(reason), a.lease("k").unwrap().take_now(reason)] {
            assert_eq!(request.acquire().await.unwrap_err().kind(), ErrorKind::Invalid, "{reason:?}");
        }
    }
}

// ── forged handles ────────────────────────────────────────────────────────────────────────────────────────────────

fn payload(handle: &Handle) -> serde_json::Value {
    use base64::Engine;
    let text = handle.reveal();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(&text["tenure1_".len()..]).unwrap();
    serde_json::from_slice(&bytes[..bytes.len() - 8]).unwrap()
}

/// The handle with one field changed, and its checksum corrected.
fn with(handle: &Handle, name: &str, value: serde_json::Value) -> String {
    use base64::Engine;
    let mut payload = payload(handle);
    payload[name] = value;
    let mut bytes = serde_json::to_vec(&payload).unwrap();
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    bytes.extend(sum.to_be_bytes());
    format!("tenure1_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

fn edited(handle: &Handle, name: &str, edit: impl FnOnce(u64) -> u64) -> String {
    let number = payload(handle)[name].as_u64().unwrap();
    with(handle, name, edit(number).into())
}

fn edited_text(handle: &Handle, name: &str, edit: impl FnOnce(&str) -> String) -> String {
    let payload = payload(handle);
    with(handle, name, edit(payload[name].as_str().unwrap()).into())
}
