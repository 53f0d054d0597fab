use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Lease, Timing};

use super::go::Go;

/// What the supervisor tells the watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The lease is granted: watch by these times, and then open the gate of the stub. It carries the witness twice, where
    /// there is one: for the watchdog, and for the child.
    Start { times: Times, witnessed: bool, go: Go },
    /// The lease is held for longer.
    Until(Times),
    /// The supervisor has sent TERM. KILL at this instant at the latest.
    Stopping { kill_at: Instant },
    /// KILL now.
    Kill,
}

/// When the tree is ended unless the lease is renewed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) term_at: Instant,
    pub(super) kill_at: Instant,
}

impl Order {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Start { times, witnessed, go } => {
                [b"S", &*times.to_bytes(), &[u8::from(*witnessed)], &*go.to_bytes()].concat()
            }
            Self::Until(times) => [b"U", &*times.to_bytes()].concat(),
            Self::Stopping { kill_at } => [b"T", &kill_at.as_nanos().to_ne_bytes()[..]].concat(),
            Self::Kill => b"K".to_vec(),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let order = match tag {
            b'S' => {
                let times = Times::take(&mut rest)?;
                let (witnessed, go) = std::mem::take(&mut rest).split_first()?;
                Self::Start { times, witnessed: *witnessed != 0, go: Go::from_bytes(go)? }
            }
            b'U' => Self::Until(Times::take(&mut rest)?),
            b'T' => Self::Stopping { kill_at: take_instant(&mut rest)? },
            b'K' => Self::Kill,
            _ => return None,
        };
        rest.is_empty().then_some(order)
    }
}

impl Times {
    /// As long as the lease is held now. Rounded to the safe side: the clock is read before the lease.
    pub(super) fn of(lease: &Lease, timing: Timing) -> Self {
        let now = BootClock::new().now();
        let kill_at = now + lease.remaining() - timing.margin();
        Self { term_at: kill_at - timing.grace(), kill_at }
    }

    fn to_bytes(self) -> Vec<u8> {
        [self.term_at, self.kill_at].map(|instant| instant.as_nanos().to_ne_bytes()).concat()
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { term_at: take_instant(bytes)?, kill_at: take_instant(bytes)? })
    }
}

fn take_instant(bytes: &mut &[u8]) -> Option<Instant> {
    let (first, rest) = bytes.split_at_checked(8)?;
    *bytes = rest;
    Some(Instant::from_nanos(u64::from_ne_bytes(first.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let at = Instant::from_nanos;
        let times = Times { term_at: at(1), kill_at: at(u64::MAX) };
        let go = Go { before: at(3), environment: vec![("NAME".to_owned(), "value".to_owned())] };
        let orders = [
            Order::Start { times, witnessed: true, go },
            Order::Until(times),
            Order::Stopping { kill_at: at(9) },
            Order::Kill,
        ];
        for order in orders {
            let bytes = order.to_bytes();
            assert_eq!(Order::from_bytes(&bytes), Some(order));
            assert_eq!(Order::from_bytes(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(Order::from_bytes(b""), None);
        assert_eq!(Order::from_bytes(b"X"), None);
    }
}
