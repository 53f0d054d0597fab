//! The suite catches every broken store, in the clause that is named after the broken promise.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tenure_conformance::broken::{Broken, Lie};
use tenure_conformance::{CheckOutcome, Finding, Report, Step, Suite};
use tokio::sync::OnceCell;

/// A few rounds are enough: a lie that is caught only by chance is not a good control.
fn suite() -> Suite {
    Suite::new(1).racers(16).rounds(5).listed(40).contenders(4).turns(2).ttl(Duration::from_secs(10))
}

/// The report of the suite for every lie. It is made once for all tests.
async fn reports() -> &'static [(Lie, Report)] {
    static REPORTS: OnceCell<Vec<(Lie, Report)>> = OnceCell::const_new();
    REPORTS.get_or_init(ask_about_every_lie).await
}

#[expect(clippy::disallowed_methods, reason = "most of the time each of them lets its keepers act")]
async fn ask_about_every_lie() -> Vec<(Lie, Report)> {
    let ask = |lie| tokio::spawn(async move { (lie, suite().run(&Broken::lying(lie)).await) });
    let asked = stream::iter(Lie::ALL.iter().copied()).map(ask).buffered(TOGETHER);
    asked.map(|report| report.expect("the suite does not panic")).collect().await
}

/// Number of stores that are checked at the same time.
const TOGETHER: usize = 12;

#[tokio::test]
async fn an_honest_store_passes_every_check_and_none_is_skipped() {
    let report = suite().run(&Broken::honest()).await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.skips().count(), 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_lie_is_caught_by_the_clause_it_breaks() {
    let mut table = format!("{:<30} {:<10} {:<70} it said\n", "lie", "clause", "check");
    for (lie, report) in reports().await {
        let caught = report.failures().find(|finding| finding.clause == lie.caught_by());
        let Some(finding) = caught else {
            panic!("{lie} ({}) was not caught by {}:\n{report}", lie.describe(), lie.caught_by());
        };
        let CheckOutcome::Failed(why) = &finding.verdict else {
            unreachable!("only failures were looked at")
        };
        writeln!(table, "{lie:<30} {:<10} {:<70} {why}", finding.clause, finding.check).unwrap();
    }
    if let Some(path) = std::env::var_os("TENURE_LIARS_TABLE") {
        std::fs::write(path, table).unwrap();
    }
}

/// The clauses of the primitives.
const PRIMITIVES: &[&str] = &["set", "slots", "election", "entries", "revisions", "doubt"];

/// The lies about what the primitives depend on. Some of them show only in some rounds of a race, or in places where
/// only the contract looks; they are not here.
const BREAK_PRIMITIVES: &[Lie] = &[
    Lie::IgnoresReplace,
    Lie::IgnoresAllConditions,
    Lie::WritesDespiteConflict,
    Lie::SkipsConditionsSometimes,
    Lie::AcceptsPreviousVersion,
    Lie::SaysOkWithoutWriting,
    Lie::UnknownAsRefused,
    Lie::UnknownAsApplied,
    Lie::StaleReads,
    Lie::EmptyForMissing,
    Lie::LosesWrites,
    Lie::EvictsIdleEntries,
    Lie::TruncatesValues,
    Lie::SameVersionForEveryWrite,
    Lie::UnsteadyVersions,
    Lie::ListRepeats,
    Lie::ListsByLetters,
    Lie::HidesReservedNames,
    Lie::ListsEverything,
    Lie::NoTime,
    Lie::AgesRunFast,
    Lie::FrozenTime,
    Lie::TickUndeclared,
    Lie::StoppedClock,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lies_that_break_primitives_are_caught_by_their_level_too() {
    assert!(Suite::clauses().ends_with(PRIMITIVES));
    let of_primitives = |finding: &&Finding| PRIMITIVES.contains(&finding.clause);
    for (lie, report) in reports().await.iter().filter(|(lie, _)| BREAK_PRIMITIVES.contains(lie)) {
        assert!(report.failures().any(|finding| of_primitives(&finding)), "{lie} was not caught:\n{report}");
    }
}

/// A check that has never failed has not proved anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_check_fails_on_some_broken_store() {
    let mut idle: BTreeSet<_> = suite().run(&Broken::honest()).await.findings.iter().map(name).collect();
    // The declarations are the one clause that these stores do not break: they are the lie.
    idle.retain(|(clause, _)| *clause != "guarantees");
    for (_, report) in reports().await {
        for finding in report.failures() {
            idle.remove(&name(finding));
        }
    }
    assert!(idle.is_empty(), "no lie shows that these check anything: {idle:#?}");
}

fn name(finding: &Finding) -> (&'static str, &'static str) {
    (finding.clause, finding.check)
}

#[test]
fn the_list_of_lies_is_complete_and_each_has_a_name_of_its_own() {
    let mut names: Vec<String> = Lie::ALL.iter().map(Lie::to_string).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), Lie::ALL.len());
    assert!(Lie::ALL.is_sorted(), "in the order of the declaration, so that a missing one shows");
    assert_eq!(Lie::ALL.last().map(|lie| *lie as usize + 1), Some(Lie::ALL.len()), "one is missing");
}

#[tokio::test]
async fn what_is_not_promised_is_skipped_and_never_passed() {
    let promises_nothing = Broken::honest().declaring(tenure_store::Guarantees::default());
    let report = suite().run(&promises_nothing).await;
    report.assert_passed();
    // The checks that pass need no promise: the declaration itself, an empty list where nothing was ever written, and
    // the absence of optional features.
    let passed = report.findings.iter().filter(|finding| finding.passed());
    let clauses: Vec<_> = passed.map(|finding| finding.clause).collect();
    assert_eq!(clauses, ["guarantees", "guarantees", "list", "removal"], "{report}");
}

/// Google Cloud Storage and R2 accept one write per second and name. A throttled racer has neither won nor lost.
#[tokio::test]
async fn a_store_that_wants_to_be_written_slowly_passes_too() {
    let mut slow = Broken::honest();
    let mut guarantees = tenure_store::Store::guarantees(&slow);
    guarantees.write_interval = std::time::Duration::from_secs(1);
    slow = slow.declaring(guarantees);
    let report = suite().run(&slow).await;
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| finding.check).collect();
    assert_eq!(skipped, ["readers beside a writer never see it go back"], "{report}");
}

#[tokio::test]
async fn each_check_is_reported_and_the_caller_may_stop_the_run() {
    let suite = suite().only("create").only("races");
    let told = Mutex::new(Vec::new());
    let report = suite
        .run_telling(&Broken::lying(Lie::IgnoresCreate), &|step| {
            let mut told = told.lock().unwrap();
            match step {
                Step::Begun { check, .. } => told.push(format!("begun {check}")),
                Step::Ended(finding) => {
                    told.push(format!("ended {}", finding.check));
                    if finding.failed() {
                        return ControlFlow::Break(());
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .await;
    assert_eq!(suite.checks(), 8);
    assert_eq!(report.findings.len(), 2, "it was broken off at the first failure: {report}");
    assert_eq!(report.failures().count(), 1);
    let each: Vec<_> = report.findings.iter().map(|finding| finding.check).collect();
    let expected: Vec<_> =
        each.iter().flat_map(|check| ["begun", "ended"].map(|word| format!("{word} {check}"))).collect();
    assert_eq!(told.into_inner().unwrap(), expected);
}
