use tenure::clock::Instant;

use super::go::Go;
use super::until::{Until, take_instant};

/// What the supervisor tells the watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The lease is granted: watch by this deadline, and then open the gate of the stub. It carries the witness, where
    /// there is one.
    Start { until: Until, witnessed: bool, go: Go },
    /// The lease is held for longer.
    Until(Until),
    /// The supervisor has sent TERM. KILL at this instant at the latest.
    Stopping { kill_at: Instant },
    /// KILL now.
    Kill,
}

impl Order {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Start { until, witnessed, go } => {
                [b"S", &*until.to_bytes(), &[u8::from(*witnessed)], &*go.to_bytes()].concat()
            }
            Self::Until(until) => [b"U", &*until.to_bytes()].concat(),
            Self::Stopping { kill_at } => [b"T", &kill_at.as_nanos().to_ne_bytes()[..]].concat(),
            Self::Kill => b"K".to_vec(),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let order = match tag {
            b'S' => {
                let until = Until::take(&mut rest)?;
                let (witnessed, go) = std::mem::take(&mut rest).split_first()?;
                Self::Start { until, witnessed: *witnessed != 0, go: Go::from_bytes(go)? }
            }
            b'U' => Self::Until(Until::take(&mut rest)?),
            b'T' => Self::Stopping { kill_at: take_instant(&mut rest)? },
            b'K' => Self::Kill,
            _ => return None,
        };
        rest.is_empty().then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let at = Instant::from_nanos;
        let until =
            Until { deadline: at(1), renewed_by: at(u64::MAX), answer: std::time::Duration::from_secs(7) };
        let go = Go { before: at(3), environment: vec![("NAME".to_owned(), "value".to_owned())] };
        let orders = [
            Order::Start { until, witnessed: true, go },
            Order::Until(until),
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
