use crate::rng::Rng;
use crate::time::{MICRO, MILLI};

/// How calls get to the store and back. The chances are out of a thousand.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// The shortest way, one direction.
    pub(crate) least: u64,
    /// What may come on top of it.
    pub(crate) spread: u64,
    /// Arrivals happen at whole multiples of this, so that some coincide.
    pub(crate) quantum: u64,
    pub(crate) request_loss: u32,
    pub(crate) answer_loss: u32,
    pub(crate) duplicate: u32,
    pub(crate) balance: u32,
    pub(crate) reset: u32,
    pub(crate) unreachable: u32,
    pub(crate) spike: u32,
    pub(crate) spike_most: u64,
    /// The shortest time between two losses of one process; zero if they may come as they like.
    pub(crate) loss_apart: u64,
}

impl Network {
    pub(super) fn draw(rng: &mut Rng, longest_ttl: u64) -> Self {
        let mut some = |most: u64| if rng.chance(350) { 0 } else { rng.skewed(1, most) as u32 };
        let [request_loss, answer_loss] = [some(150), some(150)];
        let [duplicate, balance, reset, unreachable, spike] =
            [some(50), some(60), some(50), some(50), some(30)];
        Self {
            least: rng.between(100 * MICRO, 2 * MILLI),
            spread: rng.pick(&[MILLI, 20 * MILLI, 100 * MILLI, 400 * MILLI]),
            quantum: rng.pick(&[1, 1, MILLI, 10 * MILLI]),
            request_loss,
            answer_loss,
            duplicate,
            balance,
            reset,
            unreachable,
            spike,
            spike_most: 3 * longest_ttl,
            loss_apart: 0,
        }
    }

    /// What a calm network does: there and back well within the shortest timeout, and single losses.
    pub(super) fn calm(&mut self, timeout: u64) {
        self.least = self.least.min(timeout / 10);
        self.spread = self.spread.min(timeout / 5);
        self.quantum = self.quantum.min(timeout / 20);
        self.request_loss = self.request_loss.min(20);
        self.answer_loss = self.answer_loss.min(20);
        self.reset = 0;
        self.unreachable = 0;
        self.spike = 0;
        self.duplicate = 0;
        self.balance = 0;
        self.loss_apart = 1;
    }

    /// What is left of it once everything is healed.
    pub(crate) fn healed(&mut self, timeout: u64) {
        self.calm(timeout / 2);
        self.request_loss = 0;
        self.answer_loss = 0;
    }
}
