use super::*;
use crate::Purpose;

const TTL_MAX: Duration = Duration::from_secs(60);
const LASTS: Duration = Duration::from_secs(72);
const GRANT: Purpose = Purpose::Grant { token: 8 };

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// A connection to the run `two`, opened at 1,000 seconds on the clock `boot`.
fn sighting() -> RunSighting {
    RunSighting::new("two", "boot", seconds(1_000))
}

fn entered(marks: &RunMarks) -> Quarantine {
    Quarantine::new(TTL_MAX, &sighting(), marks)
}

fn admit_at(quarantine: &Quarantine, expect: &Expect, purpose: Purpose, now: Duration) -> Admission {
    let write = Write::new("value", expect.clone()).for_purpose(purpose);
    quarantine.admit(&Key::parse("k").unwrap(), &write, now)
}

fn grant_at(quarantine: &Quarantine, now: Duration) -> Admission {
    admit_at(quarantine, &Expect::Version(quarantine.version("7")), GRANT, now)
}

#[test]
fn a_new_run_is_quarantined_from_its_first_sighting() {
    let quarantine = entered(&RunMarks::default());
    assert_eq!(grant_at(&quarantine, seconds(1_000)), Admission::Wait(LASTS));
    assert_eq!(grant_at(&quarantine, seconds(1_071)), Admission::Wait(seconds(1)));
    assert_eq!(grant_at(&quarantine, seconds(1_072)), Admission::Send);
    let long_ago = sighting().with_uptime(seconds(86_400));
    let stepped = Quarantine::new(TTL_MAX, &long_ago, &RunMarks::default());
    assert_eq!(
        grant_at(&stepped, seconds(1_000)),
        Admission::Wait(LASTS),
        "the server's clock proves nothing"
    );
}

#[test]
fn a_clock_that_is_one_fifth_too_fast_still_waits_for_the_longest_ttl() {
    assert!(StandardQuarantine.lasts(TTL_MAX).mul_f64(1.0 / 1.2) >= TTL_MAX);
}

#[test]
fn an_earlier_sighting_of_the_run_by_the_same_clock_counts() {
    let marks = RunMarks::of_run("two").with_sighting("boot", seconds(940));
    assert_eq!(grant_at(&entered(&marks), seconds(1_000)), Admission::Wait(seconds(12)));
    assert_eq!(grant_at(&entered(&marks), seconds(1_012)), Admission::Send);
    let later = RunMarks::of_run("two").with_sighting("boot", seconds(9_000));
    assert_eq!(
        grant_at(&entered(&later), seconds(1_000)),
        Admission::Wait(LASTS),
        "the own sighting is earlier"
    );
}

/// Two machines that were resumed from one image have the same boot id, and clocks that differ.
#[test]
fn a_sighting_from_before_the_start_of_the_server_is_that_of_another_machine() {
    let started = sighting().with_uptime(seconds(5));
    let marks = RunMarks::of_run("two").with_sighting("boot", seconds(100));
    let quarantine = Quarantine::new(TTL_MAX, &started, &marks);
    assert_eq!(grant_at(&quarantine, seconds(1_000)), Admission::Wait(seconds(65)));
    let of_this_run = RunMarks::of_run("two").with_sighting("boot", seconds(996));
    let quarantine = Quarantine::new(TTL_MAX, &started, &of_this_run);
    assert_eq!(grant_at(&quarantine, seconds(1_000)), Admission::Wait(seconds(68)));
}

#[test]
fn a_short_lived_command_reports_the_age_of_the_server_and_not_twice_that() {
    let marks = RunMarks::of_run("two").with_sighting("boot", seconds(980));
    let quarantine = Quarantine::new(TTL_MAX, &sighting().with_uptime(seconds(20)), &marks);
    let Admission::Wait(remaining) = grant_at(&quarantine, seconds(1_003)) else { panic!("it waits") };
    let StoreError::Throttled(throttled) = quarantine.withheld(remaining) else { panic!("it is withheld") };
    let text = format!("{throttled:?}");
    assert!(text.contains("the server started 23s ago"), "{text}");
}

#[test]
fn a_time_seen_on_another_boot_or_in_another_time_namespace_does_not_count() {
    let marks =
        RunMarks::of_run("two").with_sighting("other boot", seconds(1)).with_sighting("boot:ns", seconds(1));
    assert_eq!(grant_at(&entered(&marks), seconds(1_000)), Admission::Wait(LASTS));
}

#[test]
fn a_sighting_of_another_run_does_not_count() {
    let marks = RunMarks::of_run("one").with_sighting("boot", seconds(1));
    assert_eq!(grant_at(&entered(&marks), seconds(1_000)), Admission::Wait(LASTS));
    let unnamed = RunMarks::default().with_sighting("boot", seconds(1));
    assert_eq!(grant_at(&entered(&unnamed), seconds(1_000)), Admission::Wait(LASTS));
}

#[test]
fn a_run_that_is_marked_as_cleared_is_not_quarantined_and_one_that_another_mark_names_is() {
    let cleared = entered(&RunMarks::of_run("two").with_cleared("two"));
    assert_eq!(grant_at(&cleared, seconds(1_000)), Admission::Send);
    assert!(!cleared.has_passed(seconds(2_000)), "the mark is there already");
    let another = entered(&RunMarks::of_run("two").with_cleared("one"));
    assert_eq!(grant_at(&another, seconds(1_000)), Admission::Wait(LASTS));
}

#[test]
fn a_mark_that_another_participant_writes_ends_the_wait() {
    let mut quarantine = entered(&RunMarks::of_run("two"));
    assert_eq!(grant_at(&quarantine, seconds(1_010)), Admission::Wait(seconds(62)));
    quarantine.note(&RunMarks::of_run("two").with_cleared("two"));
    assert_eq!(grant_at(&quarantine, seconds(1_010)), Admission::Send);
}

#[test]
fn the_participant_that_has_waited_writes_the_mark() {
    let mut quarantine = entered(&RunMarks::of_run("two"));
    assert!(!quarantine.has_passed(seconds(1_071)));
    assert!(quarantine.has_passed(seconds(1_072)));
    quarantine.note(&RunMarks::of_run("two").with_cleared("two"));
    assert!(!quarantine.has_passed(seconds(1_072)), "once");
}

#[test]
fn renewals_and_releases_pass_and_grants_resumptions_plants_and_changes_wait() {
    let quarantine = entered(&RunMarks::default());
    let seen = Expect::Version(quarantine.version("7"));
    let admit = |expect: &Expect, purpose| admit_at(&quarantine, expect, purpose, seconds(1_000));
    assert_eq!(admit(&seen, Purpose::Renewal), Admission::Send);
    assert_eq!(admit(&seen, Purpose::Release), Admission::Send);
    assert_eq!(admit(&seen, GRANT), Admission::Wait(LASTS));
    assert_eq!(admit(&seen, Purpose::Resumption), Admission::Wait(LASTS), "the handle may have been used");
    assert_eq!(admit(&seen, Purpose::Change), Admission::Wait(LASTS));
    assert_eq!(admit(&Expect::Absent, Purpose::Change), Admission::Wait(LASTS));
}

#[test]
fn the_safety_check_of_a_store_does_not_wait() {
    let quarantine = entered(&RunMarks::default());
    let check = Write::new("checked", Expect::Absent);
    assert_eq!(quarantine.admit(&Key::scratch(), &check, seconds(1_000)), Admission::Send);
    let probed = Key::from_stored(".tenure/probe/1/a").unwrap();
    assert_eq!(quarantine.admit(&probed, &check, seconds(1_000)), Admission::Send, "nor does a probe");
    let slot = Key::group_slot(&Key::parse("k").unwrap(), 0).unwrap();
    assert_eq!(quarantine.admit(&slot, &check, seconds(1_000)), Admission::Wait(LASTS), "a slot is a lease");
    let before = Write::new("checked", Expect::Version(Version::new("one:7")));
    assert_eq!(quarantine.admit(&Key::scratch(), &before, seconds(1_000)), Admission::Conflict);
}

#[test]
fn a_restart_during_the_quarantine_begins_it_anew() {
    let before = RunMarks::of_run("two").with_sighting("boot", seconds(1_000));
    let third = RunSighting::new("three", "boot", seconds(1_060));
    let quarantine = Quarantine::new(TTL_MAX, &third, &before);
    assert_eq!(grant_at(&quarantine, seconds(1_072)), Admission::Wait(seconds(60)));
}

#[test]
fn a_version_read_in_an_earlier_run_never_conditions_a_write() {
    let (one, two) = (RunSighting::new("one", "boot", seconds(1)), sighting());
    let read = Quarantine::unneeded(&one).version("7");
    assert_eq!(read.as_str(), "one:7");
    let cleared = RunMarks::default().with_cleared("two");
    for quarantine in [entered(&RunMarks::default()), entered(&cleared), Quarantine::unneeded(&two)] {
        assert_eq!(quarantine.stamp(&read), None);
        assert_eq!(quarantine.stamp(&quarantine.version("7")), Some("7"));
        for purpose in [Purpose::Renewal, Purpose::Resumption, Purpose::Release, GRANT, Purpose::Change] {
            let admitted = admit_at(&quarantine, &Expect::Version(read.clone()), purpose, seconds(5_000));
            assert_eq!(admitted, Admission::Conflict, "{purpose:?}");
        }
        let impossible = Expect::Version(Version::new("no run"));
        assert_eq!(admit_at(&quarantine, &impossible, Purpose::Renewal, seconds(5_000)), Admission::Conflict);
    }
}

#[test]
fn nothing_waits_on_a_server_that_loses_nothing() {
    let quarantine = Quarantine::unneeded(&sighting());
    assert_eq!(grant_at(&quarantine, seconds(1_000)), Admission::Send);
    assert!(!quarantine.has_passed(seconds(1_000)), "there is no quarantine, and no mark");
}

#[test]
fn the_answer_to_a_write_that_waits_says_why_and_for_how_long() {
    let started = sighting().with_uptime(seconds(2));
    let quarantine = Quarantine::new(TTL_MAX, &started, &RunMarks::default());
    let Some(remaining) = quarantine.remaining(seconds(1_010)) else { panic!("it lasts") };
    assert_eq!(
        quarantine.withheld(remaining).to_string(),
        "the server started 12s ago and may have forgotten leases: nothing is granted for 62s more"
    );
    assert_eq!(
        entered(&RunMarks::default()).withheld(remaining).to_string(),
        "the server may have restarted and forgotten leases: nothing is granted for 62s more"
    );
}

/// A server that is not what it says it is.
#[test]
fn an_impossible_uptime_is_only_a_number() {
    let marks = RunMarks::of_run("two").with_sighting("boot", seconds(940));
    let quarantine = Quarantine::new(TTL_MAX, &sighting().with_uptime(seconds(u64::MAX)), &marks);
    assert_eq!(grant_at(&quarantine, seconds(1_000)), Admission::Wait(seconds(12)));
    let text = quarantine.withheld(seconds(12)).to_string();
    assert!(text.starts_with("the server may have restarted"), "{text}");
}

#[test]
fn a_write_that_waits_is_tried_again_before_the_end_because_another_participant_may_clear_the_run() {
    let quarantine = entered(&RunMarks::default());
    for (remaining, pause) in [(seconds(62), seconds(5)), (seconds(2), seconds(2))] {
        let StoreError::Throttled(throttled) = quarantine.withheld(remaining) else {
            panic!("it is withheld")
        };
        assert_eq!(throttled.after, Some(pause));
    }
}
