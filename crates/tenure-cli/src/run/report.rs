use super::link::LinkListener;

/// Message of the watchdog to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The stub waits at its gate, under this process id.
    Ready { stub: i32 },
    /// The witness is held, the timer set, and the gate open.
    Started,
    /// The stub could not execute the program: the error number, or zero if it was too late to start.
    NotStarted { error: i32 },
    /// No renewal arrived in time: the tree got TERM. With the lateness, if only a late timer is the cause.
    Terminating { late_ms: i32 },
    /// The child is reaped, with this status of `wait(2)`.
    Ended { status: i32 },
    /// KILL reaches nothing although a process is left: one that may not be signalled, or zero if none is visible.
    Left { pid: i32 },
    /// A process of the tree was alive this long after the deadline.
    Overrun { millis: i32 },
    /// The complete tree is reaped.
    Alone,
}

impl Report {
    /// The next message; `None` once the watchdog has exited.
    pub(super) async fn next(control: &LinkListener) -> Option<Self> {
        loop {
            let (message, _) = control.next().await?;
            if let Some(report) = Self::from_bytes(&message) {
                return Some(report);
            }
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let (tag, number) = match self {
            Self::Ready { stub } => (b'R', stub),
            Self::Started => (b'S', 0),
            Self::NotStarted { error } => (b'N', error),
            Self::Terminating { late_ms } => (b'T', late_ms),
            Self::Ended { status } => (b'E', status),
            Self::Left { pid } => (b'D', pid),
            Self::Overrun { millis } => (b'O', millis),
            Self::Alone => (b'L', 0),
        };
        [&[tag][..], &number.to_ne_bytes()].concat()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, number) = bytes.split_first()?;
        let number = i32::from_ne_bytes(number.try_into().ok()?);
        match tag {
            b'R' => Some(Self::Ready { stub: number }),
            b'S' => Some(Self::Started),
            b'N' => Some(Self::NotStarted { error: number }),
            b'T' => Some(Self::Terminating { late_ms: number }),
            b'E' => Some(Self::Ended { status: number }),
            b'D' => Some(Self::Left { pid: number }),
            b'O' => Some(Self::Overrun { millis: number }),
            b'L' => Some(Self::Alone),
            _ => None,
        }
    }
}
