use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Key, Reason};

use super::{Doubt, Fault, HeldBy, Lost, Sighting};
use crate::record::{Record, State};
use crate::{Error, ErrorKind, Holder, Token};

/// The reason why a lease was not granted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Denied {
    /// Another holder has it.
    Held(HeldBy),
    /// Another holder has it and was not asked to release it: that holder cannot stop the work under it.
    Unstoppable(HeldBy),
    /// The record of the former holder has run out, and its work still runs.
    Outlived {
        /// That record.
        record: Arc<Record>,
        /// The sighting of its witness.
        sighting: Sighting,
    },
    /// The latest success of this lease began too recently.
    NotDue {
        /// The token of that success.
        token: Token,
        /// Time since it began, by the store's clock.
        since: Duration,
        /// Time until the next run may begin.
        left: Duration,
    },
    /// It is inconclusive whether a run is due.
    Unclear(Doubt),
    /// The store did not answer in time.
    Unavailable(Option<Fault>),
    /// The store holds back grants, and can be asked again after this time. The source of the error says why.
    Withheld(Duration),
    /// The store refused the call.
    Refused(Reason),
    /// The value is not a record that this version understands.
    Foreign(Arc<str>),
    /// The record is a plain key, not a lease.
    PlainKey(Arc<Record>),
    /// The key was retired.
    Closed(Arc<Record>),
    /// The token went back on a store without a clock that could compensate for it.
    WentBack {
        /// The greatest token seen before.
        seen: Token,
    },
    /// The time in the store's answers does not advance, so it is no floor of tokens.
    ClockStands,
    /// The token is at the top of its range.
    TokensExhausted,
    /// The term of the handle has ended, or another holder has the lease.
    StaleHandle(Lost),
    /// The request was cancelled.
    Cancelled,
}

impl Denied {
    /// The reason after the patience has ended, by the fault of the last call.
    pub(super) fn after(last_fault: Option<Fault>) -> Self {
        match last_fault {
            Some(Fault::Withheld(after)) => Self::Withheld(after),
            Some(Fault::DENIED) => Self::Refused(Reason::Denied),
            last_fault => Self::Unavailable(last_fault),
        }
    }

    /// The holder that is in the way; `None` if the lease was not granted for another reason.
    pub fn held(&self) -> Option<HeldBy> {
        match self {
            Self::Held(held) | Self::Unstoppable(held) => Some(held.clone()),
            Self::Outlived { record, .. } => Some(HeldBy::outlived(record)),
            _ => None,
        }
    }

    /// The error of a lease that was not granted to this holder.
    pub fn error(&self, key: &Key, store: &str, holder: &Holder) -> Error {
        Error::new(self.kind(), format!("{} on {store} {}", key.titled(), self.sentence(holder)))
            .of_denial(self)
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Held(_)
            | Self::Unstoppable(_)
            | Self::Outlived { .. }
            | Self::NotDue { .. }
            | Self::Withheld(_) => ErrorKind::Held,
            Self::Unavailable(_) | Self::Cancelled => ErrorKind::Unavailable,
            Self::Refused(reason) => (*reason).into(),
            Self::ClockStands | Self::Unclear(_) => Reason::Unsupported.into(),
            Self::Foreign(_) | Self::WentBack { .. } | Self::TokensExhausted => ErrorKind::Corrupt,
            Self::Closed(_) | Self::PlainKey(_) => ErrorKind::Invalid,
            Self::StaleHandle(_) => ErrorKind::Lost,
        }
    }

    /// The part of the message after the name of the lease.
    fn sentence(&self, holder: &Holder) -> String {
        match self {
            Self::Held(held) => {
                let is_reserved = matches!(held.record.state, State::Reserved(_));
                format!(
                    "is {} {} (token {}), at most {} left: wait, or do something else",
                    if is_reserved { "reserved for" } else { "held by" },
                    held.holder(),
                    held.token(),
                    rounded_up(held.remaining.at_most)
                )
            }
            Self::Unstoppable(held) => format!(
                "is held by {} (token {}), which cannot stop the work under it, and was not asked to: {}. Stop that \
                 work, or wait until it ends",
                held.holder(),
                held.token(),
                held.record.cannot_stop().map_or("", |because| because)
            ),
            Self::Outlived { record, sighting } => format!(
                "was held by {} (token {}) and has run out, but {}. Stop it, or wait until it ends",
                HeldBy::outlived(record).holder(),
                record.token,
                whose_work(*sighting)
            ),
            Self::NotDue { token, since, left } => format!(
                "is not due for {holder}: its last successful run (token {token}) began {}s ago by the store's clock. Try again in \
                 {}s, or use a period of zero",
                since.as_secs(),
                left.as_millis().div_ceil(1_000)
            ),
            Self::Unclear(Doubt::WallApart(apart)) => format!(
                "was not granted to {holder}: it is not due, but the clocks of the store and of this machine differ by {}s, so the \
                 store's clock may stand still. Set the clocks",
                apart.as_secs()
            ),
            Self::Unclear(Doubt::SuccessAhead(ahead)) => format!(
                "was not granted to {holder}: its last successful run began {}s in the future by the store's clock. Set that \
                 clock, or run it once with a period of zero",
                ahead.as_secs()
            ),
            Self::Unclear(Doubt::NoTime) => format!(
                "was not granted to {holder} once per period, because the store's clock is not set: set it"
            ),
            Self::Unavailable(_) => format!("could not be granted to {holder} in time: try again later"),
            Self::Withheld(after) => format!(
                "is not granted to {holder} yet, because the store holds back grants: wait, or try again in {}s",
                after.as_millis().div_ceil(1_000)
            ),
            Self::Refused(reason) => format!("was not granted to {holder}: {}", refusal(*reason)),
            Self::Foreign(what) => format!("has a value that this version does not overwrite: {what}"),
            Self::PlainKey(record) => match &record.holder {
                Some(owner) => format!(
                    "is a plain key of {} (revision {}), not a lease: use another name",
                    owner.id(),
                    record.token
                ),
                None => "is a plain key without an entry, not a lease: use another name".to_owned(),
            },
            Self::Closed(record) => match &record.state {
                State::Closed(closure) => format!(
                    "was closed by {} (token {}): {}. Use another key",
                    closure.by, record.token, closure.because
                ),
                _ => "was closed: use another key".to_owned(),
            },
            Self::WentBack { seen } => format!(
                "went back in time: token {seen} was seen before, and the store now shows a smaller one and has no \
                 clock to correct it. Nothing is granted: find out what deleted or restored the record, then restart this process"
            ),
            Self::ClockStands => format!(
                "was not granted to {holder}, because the time in the store's answers stands still: a cache on the way \
                 may answer instead of the store, so let it forward every request, or set the clock of the store"
            ),
            Self::TokensExhausted => {
                "is at the top of its token range, and nothing is granted: use another key".to_owned()
            }
            Self::StaleHandle(why) => format!("is no longer held by {holder}, stop acting: {why}"),
            Self::Cancelled => format!("is no longer wanted by {holder}"),
        }
    }
}

/// A duration in whole seconds, or in milliseconds if it is shorter than a second.
fn rounded_up(span: Duration) -> String {
    match span.as_nanos().div_ceil(1_000_000) {
        millis @ 0..1_000 => format!("{millis}ms"),
        millis => format!("{}s", millis.div_ceil(1_000)),
    }
}

/// Description of the part of a former term that is alive.
fn whose_work(sighting: Sighting) -> &'static str {
    if sighting.guards_locked {
        "a process of its command is still alive, and so is one that guards it"
    } else {
        "a process of its command is still alive, an orphan without a guard"
    }
}

/// The reason of a refused call, and what to do about it.
pub(crate) fn refusal(reason: Reason) -> String {
    match reason {
        Reason::Unsupported => {
            "the store is not fit for leases as it is, follow the advice or use another store".to_owned()
        }
        Reason::Invalid => "the store rejected the call as invalid, check the key and the value".to_owned(),
        Reason::Missing => format!("{reason}, create it or correct its settings"),
        Reason::Damaged => {
            "inspect the stored value, which is not a Tenure record and was not overwritten".to_owned()
        }
        Reason::Denied => "the store denied access, check the credentials".to_owned(),
        Reason::Unreachable => format!("{reason}, try again later"),
        Reason::Gone => format!("{reason}, connect again"),
        _ => reason.to_string(),
    }
}
