use std::fmt;

use crate::Finding;

/// All findings of the suite about one store, in the order of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a report that is not read finds nothing: see assert_passed"]
pub struct Report {
    /// The harness's name for the store.
    pub store: String,
    /// One entry per check.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The checks in which the store broke the contract.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.failed())
    }

    /// The checks that did not run, each with its reason.
    pub fn skips(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.skipped())
    }

    /// True if no check failed. Skipped checks are not failures: read [`skips`](Self::skips) too.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Panics with every failure, if there is one.
    ///
    /// # Panics
    ///
    /// If the store broke the contract.
    #[track_caller]
    pub fn assert_passed(&self) {
        let failures: Vec<_> = self.failures().map(|finding| format!("\n  {finding}")).collect();
        assert!(failures.is_empty(), "{} breaks the contract:{}", self.store, failures.concat());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conformance of {}", self.store)?;
        for finding in &self.findings {
            writeln!(f, "  {finding}")?;
        }
        let passed = self.findings.iter().filter(|finding| finding.passed()).count();
        write!(f, "{passed} passed, {} failed, {} skipped", self.failures().count(), self.skips().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckOutcome;

    fn report(verdicts: &[CheckOutcome]) -> Report {
        let finding = |verdict: &CheckOutcome| Finding {
            clause: "create",
            check: "is",
            verdict: verdict.clone(),
            note: "".into(),
        };
        Report { store: "a shoe box".into(), findings: verdicts.iter().map(finding).collect() }
    }

    #[test]
    fn a_skip_is_neither_a_pass_nor_a_failure() {
        let report = report(&[CheckOutcome::Passed, CheckOutcome::Skipped("not promised: a watch".into())]);
        report.assert_passed();
        assert!(report.to_string().ends_with("1 passed, 0 failed, 1 skipped"), "{report}");
        assert!(report.to_string().contains("not promised: a watch"), "{report}");
    }

    #[test]
    #[should_panic(expected = "a shoe box breaks the contract:\n  FAILED   create      is: two winners")]
    fn a_failure_is_told_with_what_was_seen() {
        report(&[CheckOutcome::Passed, CheckOutcome::Failed("two winners".into())]).assert_passed();
    }
}
