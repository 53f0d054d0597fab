use super::Judgement;
use crate::trace::Moment;

/// S2: within the drift bound, no two holders believe at the same true instant.
///
/// A belief begins when the machine reports it. It ends when its holder's clock reaches the deadline, or when the
/// machine reports the loss. Two beliefs overlap exactly if one begins, or is extended, before the other has ended. The
/// promise does not cover beliefs during which the record was deleted, restored or replaced from outside: they are
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
    /// The true time at which it ends by its holder's clock.
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

    /// A belief ends before its deadline.
    pub(crate) fn ends(&mut self, lease: u32) {
        self.running.retain(|belief| belief.lease != lease);
    }

    /// A belief ends, but its work continues: any other holder that believes until the work ends breaks S2.
    pub(crate) fn acts_after_belief(&mut self, lease: u32) {
        for belief in self.running.iter_mut().filter(|belief| belief.lease == lease) {
            belief.end = u64::MAX;
        }
    }

    pub(crate) fn taint_all(&mut self) {
        for belief in &mut self.running {
            belief.tainted = true;
        }
    }

    /// True if any holder believes.
    pub(crate) fn any_holder_believes(&self, now: u64) -> bool {
        self.running.iter().any(|belief| belief.end > now)
    }

    /// True if this lease believes.
    pub(crate) fn of(&self, now: u64, lease: u32) -> bool {
        self.running.iter().any(|belief| belief.lease == lease && belief.end > now)
    }

    /// The current belief, if there is one.
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
