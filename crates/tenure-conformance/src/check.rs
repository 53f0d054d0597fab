use tenure_store::BoxFuture;

use crate::stop::CheckResult;
use crate::trial::Trial;

/// One part of the contract, and its checks.
pub(crate) struct Clause {
    pub(crate) name: &'static str,
    pub(crate) checks: &'static [Check],
}

/// One check: a sentence that is true of a correct store, and the calls that verify it.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Trial<'a>) -> BoxFuture<'a, CheckResult>,
}

/// A check: its sentence, its async function, and the function's arguments besides the trial.
macro_rules! check {
    ($name:literal, $run:ident $(, $given:expr)?) => {
        $crate::check::Check { name: $name, run: |trial| Box::pin($run(trial $(, $given)?)) }
    };
}

pub(crate) use check;
