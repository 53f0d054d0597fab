//! Takeovers from holders that end, and the reads of contenders. The command measures many more of them.

use tenure_sim::{Reads, Situation, crowd};

const ENDS: u64 = 300;

#[test]
fn every_goal_is_met_in_phase_and_the_first_is_missed_at_random_phases() {
    for situation in Situation::ALL {
        let takeovers = situation.measure(Reads::InPhase, ENDS);
        let name = situation.name;
        assert!(situation.goals.is_none_or(|goals| takeovers.meets(&goals)), "{name}: {takeovers:?}");
    }
    let random = Situation::ALL[0].measure(Reads::RandomPhase, ENDS);
    assert!(!random.meets(&Situation::ALL[0].goals.unwrap()), "{random:?}");
}

/// The longest takeover that is found is at most the bound, and not far below it.
#[test]
fn no_takeover_takes_longer_than_the_timing_says() {
    let mut share: f64 = 0.0;
    for situation in Situation::ALL {
        let timing = situation.timing();
        let bound = timing.worst_write_outage().as_secs_f64() / timing.ttl().as_duration().as_secs_f64();
        for reads in [Reads::RandomPhase, Reads::InPhase] {
            let longest = situation.measure(reads, ENDS).longest();
            assert!(longest <= bound, "{}: {longest} ttl, and the bound is {bound}", situation.name);
            share = share.max(longest / bound);
        }
    }
    assert!(share > 0.9, "the longest takeover is {share} of the bound");
}

#[test]
fn a_contender_reads_the_released_record_within_one_poll() {
    let release = Situation::ALL.iter().find(|situation| situation.releases).unwrap();
    let takeovers = release.measure(Reads::InPhase, ENDS);
    // Three eighths of a ttl, and the calls of the release and the grant.
    assert!(takeovers.longest() < 0.395, "{}", takeovers.longest());
    assert!((takeovers.reads_after - 1.0).abs() < 0.05, "one read is enough: {}", takeovers.reads_after);
}

#[test]
fn a_crowd_does_not_synchronise_its_reads() {
    for crowd in crowd(1_000, Reads::InPhase) {
        assert!(crowd.is_spread() && crowd.reads <= 4.0, "{crowd:?}");
    }
}
