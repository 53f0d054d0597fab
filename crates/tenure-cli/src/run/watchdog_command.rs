use tenure::clock::Instant;

use super::start_message::StartMessage;
use super::until::{Until, take_instant};

/// Message of the supervisor to the watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WatchdogCommand {
    /// The lease is granted: watch this deadline, and then open the gate of the stub. It carries the witness, if there
    /// is one.
    Start { until: Until, witnessed: bool, message: StartMessage },
    /// The lease is renewed.
    Until(Until),
    /// The supervisor has sent TERM. KILL at this instant at the latest.
    Stopping { kill_at: Instant },
    /// KILL now.
    Kill,
}

impl WatchdogCommand {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Start { until, witnessed, message } => {
                [b"S", &*until.to_bytes(), &[u8::from(*witnessed)], &*message.to_bytes()].concat()
            }
            Self::Until(until) => [b"U", &*until.to_bytes()].concat(),
            Self::Stopping { kill_at } => [b"T", &kill_at.as_nanos().to_ne_bytes()[..]].concat(),
            Self::Kill => b"K".to_vec(),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let command = match tag {
            b'S' => {
                let until = Until::take(&mut rest)?;
                let (witnessed, message) = std::mem::take(&mut rest).split_first()?;
                Self::Start { until, witnessed: *witnessed != 0, message: StartMessage::from_bytes(message)? }
            }
            b'U' => Self::Until(Until::take(&mut rest)?),
            b'T' => Self::Stopping { kill_at: take_instant(&mut rest)? },
            b'K' => Self::Kill,
            _ => return None,
        };
        rest.is_empty().then_some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_back_unchanged() {
        let at = Instant::from_nanos;
        let until =
            Until { deadline: at(1), renewed_by: at(u64::MAX), answer: std::time::Duration::from_secs(7) };
        let message =
            StartMessage { before: at(3), environment: vec![("NAME".to_owned(), "value".to_owned())] };
        let commands = [
            WatchdogCommand::Start { until, witnessed: true, message },
            WatchdogCommand::Until(until),
            WatchdogCommand::Stopping { kill_at: at(9) },
            WatchdogCommand::Kill,
        ];
        for command in commands {
            let bytes = command.to_bytes();
            assert_eq!(WatchdogCommand::from_bytes(&bytes), Some(command));
            assert_eq!(WatchdogCommand::from_bytes(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(WatchdogCommand::from_bytes(b""), None);
        assert_eq!(WatchdogCommand::from_bytes(b"X"), None);
    }
}
