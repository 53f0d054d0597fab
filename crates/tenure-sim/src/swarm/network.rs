use crate::rng::Rng;
use crate::time::{MICRO, MILLI};

/// Configuration of the network between processes and store. Chances are per thousand.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// Shortest delay, one way.
    pub(crate) least: u64,
    /// Largest random delay on top of it.
    pub(crate) spread: u64,
    /// Arrivals happen at multiples of this, so that some coincide.
    pub(crate) quantum: u64,
    pub(crate) request_loss: u32,
    pub(crate) answer_loss: u32,
    pub(crate) duplicate: u32,
    pub(crate) balance: u32,
    pub(crate) reset: u32,
    pub(crate) unreachable: u32,
    pub(crate) spike: u32,
    pub(crate) spike_most: u64,
    /// Zero if losses of one process may follow each other; otherwise the least time between them, in units of two ttl.
    pub(crate) loss_apart: u64,
}

impl Network {
    pub(crate) fn draw(rng: &mut Rng, longest_ttl: u64) -> Self {
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

    /// Makes the network calm: round trips well within the shortest timeout, and only single losses.
    pub(crate) fn calm(&mut self, timeout: u64) {
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

    /// Makes the network reliable, after all faults have ended.
    pub(crate) fn healed(&mut self, timeout: u64) {
        self.calm(timeout / 2);
        self.request_loss = 0;
        self.answer_loss = 0;
    }
}
