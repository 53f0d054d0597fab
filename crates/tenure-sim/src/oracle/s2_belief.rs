use super::Judgement;
use crate::trace::Moment;

/// S2: within the drift bound, no two holders believe at one true instant.
///
/// A belief begins when it is told and ends when its holder's own clock reaches the deadline, or when the holder is
/// told that it is over. Two of them overlap exactly if one begins, or is extended, before the other has ended.
/// Outside of the promise are beliefs over which the record was deleted, restored or replaced from outside: they are
/// *tainted* until they end.
#[derive(Debug, Default)]
pub(crate) struct Beliefs {
    running: Vec<Interval>,
}

/// One belief.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    /// The lease that believes.
    pub(crate) lease: u32,
    /// The process that believes.
    pub(crate) process: usize,
    pub(crate) token: u64,
    /// When it ends by its own clock, in true time.
    pub(crate) end: u64,
    pub(crate) tainted: bool,
}

impl Beliefs {
    /// A belief begins.
    pub(crate) fn begins(&mut self, now: u64, belief: Interval) -> Judgement {
        self.running.retain(|other| other.end > now && other.lease != belief.lease);
        let verdict = self.alone(now, &belief);
        self.running.push(belief);
        verdict
    }

    /// A belief is extended.
    pub(crate) fn extends(&mut self, now: u64, lease: u32, end: u64, tainted: bool) -> Judgement {
        let Some(belief) = self.running.iter_mut().find(|belief| belief.lease == lease) else {
            return Ok(());
        };
        belief.end = end;
        belief.tainted |= tainted;
        let belief = belief.clone();
        self.alone(now, &belief)
    }

    /// A belief is over before its deadline.
    pub(crate) fn ends(&mut self, lease: u32) {
        self.running.retain(|belief| belief.lease != lease);
    }

    /// A belief is over, and its work goes on: a holder that believes meanwhile is not alone.
    pub(crate) fn acts_after_belief(&mut self, lease: u32) {
        for belief in self.running.iter_mut().filter(|belief| belief.lease == lease) {
            belief.end = u64::MAX;
        }
    }

    pub(super) fn taint_all(&mut self) {
        for belief in &mut self.running {
            belief.tainted = true;
        }
    }

    /// Whether anybody believes.
    pub(crate) fn anybody_believes(&self, now: u64) -> bool {
        self.running.iter().any(|belief| belief.end > now)
    }

    /// Whether this lease believes.
    pub(crate) fn of(&self, now: u64, lease: u32) -> bool {
        self.running.iter().any(|belief| belief.lease == lease && belief.end > now)
    }

    /// The lease that believes, if it is one.
    pub(crate) fn holder(&self, now: u64) -> Option<&Interval> {
        self.running.iter().find(|belief| belief.end > now)
    }

    fn alone(&self, now: u64, belief: &Interval) -> Judgement {
        let other = self.running.iter().find(|other| {
            other.lease != belief.lease && other.end > now && !other.tainted && !belief.tainted
        });
        match other {
            None => Ok(()),
            Some(other) => Err(format!(
                "p{} believes token {} while p{} believes token {} until{}",
                belief.process,
                belief.token,
                other.process,
                other.token,
                Moment(other.end)
            )),
        }
    }
}
