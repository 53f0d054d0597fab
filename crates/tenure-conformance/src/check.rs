use tenure_store::BoxFuture;

use crate::stop::CheckResult;
use crate::trial::Trial;

/// One part of the contract, and the checks that pin it down.
#[derive(Debug)]
pub(crate) struct Clause {
    pub(crate) name: &'static str,
    pub(crate) checks: &'static [Check],
}

/// One check: a sentence that is true of a good store, and the calls that find out.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Trial<'a>) -> BoxFuture<'a, CheckResult>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
