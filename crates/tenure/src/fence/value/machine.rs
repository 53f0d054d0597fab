use std::sync::Arc;

use bytes::Bytes;
use tenure_core::Token;
use tenure_core::record::Nonce;
use tenure_fence::{FenceError, FencingToken};
use tenure_store::{Applied, BoxError, Expect, Put, Reading, Reason, StoreError, Throttled, Version};

use super::rules::{Rules, Standard};
use super::{Header, ValueEnvelope};
use crate::keeper::calls::is_new;

/// One write or seal of a fenced value, without I/O: it decides the next call on the store from the answers so far.
///
/// Every write is conditional on exactly the entry that the token was checked against. So the store itself refuses a write
/// that was checked against an earlier mark, however long the writer was paused in between.
#[derive(Debug)]
pub(super) struct ValueMachine<R = Standard> {
    rules: R,
    resource: Arc<str>,
    offered: FencingToken,
    act: Act,
    /// The greatest token that this process has seen there.
    highest: Option<FencingToken>,
    /// The entry that the next write replaces; `None` before the first read.
    base: Option<Base>,
    /// Nonces of the writes that replace `base`, and may have landed. At most one of them can land, and all of them have
    /// the same content.
    outstanding: Vec<Nonce>,
    /// Header of the latest write.
    sent: Option<Header>,
    /// True if one of them has no definite answer.
    in_doubt: bool,
    /// Error of the latest call without a definite answer.
    cause: Option<BoxError>,
}

/// The act of one call.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Write(Bytes),
    Seal,
}

/// The entry that a write replaces.
#[derive(Clone, Debug)]
pub(super) enum Base {
    Absent,
    Entry {
        version: Version,
        header: Header,
        /// The content, if it was read during this call.
        content: Option<Bytes>,
    },
}

/// An entry, as this process saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) version: Version,
    pub(super) header: Header,
}

/// The answer to the latest call.
#[derive(Debug)]
pub(super) enum Input {
    Start,
    Read(Result<Reading, StoreError>),
    Written(Result<Put, StoreError>),
}

/// The next call on the store, or the result.
#[derive(Debug)]
pub(super) enum NextCall {
    Read,
    Write { value: Bytes, expect: Expect },
    Done(Result<Sighting, FenceError>),
}

/// The fate of the outstanding writes, by what a read shows.
enum Fate {
    /// One of them landed.
    Landed,
    /// None of them landed, and none can any more: another write replaced their base.
    Dead,
    /// None of them has landed so far.
    Pending,
    /// The entry does not show it.
    Unclear,
}

impl<R: Rules> ValueMachine<R> {
    pub(super) fn new(rules: R, resource: Arc<str>, offered: FencingToken, act: Act) -> Self {
        Self {
            rules,
            resource,
            offered,
            act,
            highest: None,
            base: None,
            outstanding: Vec::new(),
            sent: None,
            in_doubt: false,
            cause: None,
        }
    }

    /// Continues from what this process has seen: the greatest token, and the entry as it was last.
    pub(super) fn knowing(self, highest: Option<FencingToken>, latest: Option<Sighting>) -> Self {
        let base = latest.map(|Sighting { version, header }| Base::Entry { version, header, content: None });
        Self { highest, base, ..self }
    }

    /// Decides the next call. `nonce` is fresh.
    pub(super) fn step(&mut self, nonce: Nonce, input: Input) -> NextCall {
        match input {
            Input::Start => self.start(nonce),
            Input::Read(Ok(reading)) => self.shown(nonce, reading),
            Input::Read(Err(error)) => self.not_read(error),
            Input::Written(Ok(Put::Applied(applied))) => self.applied(applied),
            // Also if a balancer has sent the write twice and the first copy was applied: the read decides.
            Input::Written(Ok(Put::Conflict(_))) => NextCall::Read,
            Input::Written(Err(error)) => self.not_written(error),
        }
    }

    /// The error of a call that is given up: a bound is reached.
    pub(super) fn gives_up(&mut self, why: &str) -> FenceError {
        let source = match self.cause.take() {
            Some(cause) => format!("{why}: {cause}"),
            None => why.to_owned(),
        };
        self.error(FenceError::refused(&*self.resource, Reason::Unreachable, source))
    }

    fn start(&mut self, nonce: Nonce) -> NextCall {
        // The mark only rises, so a token that is smaller than one seen before needs no call.
        if let Err(error) = self.rules.admits(&self.offered, &self.resource, self.highest.as_ref()) {
            return self.fail(error);
        }
        match (&self.act, &self.base) {
            (Act::Write(_), Some(_)) => self.write(nonce),
            // A seal keeps the content, so it reads it.
            _ => NextCall::Read,
        }
    }

    fn shown(&mut self, nonce: Nonce, reading: Reading) -> NextCall {
        let base = match reading.entry {
            None => Base::Absent,
            Some(entry) => match ValueEnvelope::decode(&entry.value) {
                Ok(ValueEnvelope { header, content }) => {
                    Base::Entry { version: entry.version, header, content: Some(content) }
                }
                Err(flaw) => {
                    let (resource, what) = (self.resource.to_string(), flaw.to_string());
                    return self.fail(FenceError::Foreign { resource, what });
                }
            },
        };
        match self.fate(&base) {
            Fate::Landed => return NextCall::Done(Ok(base.sighting().expect("it shows a write"))),
            Fate::Dead => self.outstanding.clear(),
            // A conflict is the store's word that nothing was written. Only a balancer that sent the write twice makes it
            // wrong, and then only if so many writes followed that the entry no longer shows the first copy.
            Fate::Unclear if !self.in_doubt => self.outstanding.clear(),
            Fate::Pending => {}
            Fate::Unclear => return self.fail(self.went_back(&base).unwrap_or_else(|| self.unclear())),
        }
        if let Some(error) = self.went_back(&base) {
            return self.fail(error);
        }
        if let Some(mark) = base.mark() {
            self.highest = Some(mark.clone());
        }
        self.base = Some(base);
        self.write(nonce)
    }

    /// The next write: the token is checked against the base, and the store checks that the base is still there.
    fn write(&mut self, nonce: Nonce) -> NextCall {
        let base = self.base.as_ref().expect("the entry was read");
        if let Err(error) = self.rules.admits(&self.offered, &self.resource, base.mark()) {
            return self.fail(error);
        }
        let (content, written) = match (&self.act, base) {
            (Act::Write(content), _) => (content.clone(), Some(self.offered.token())),
            (Act::Seal, Base::Absent) => (Bytes::new(), None),
            (Act::Seal, Base::Entry { version, header, .. }) if header.mark == self.offered => {
                let sighting = Sighting { version: version.clone(), header: header.clone() };
                return NextCall::Done(Ok(sighting));
            }
            (Act::Seal, Base::Entry { header, content, .. }) => {
                (content.clone().expect("a seal reads the content"), header.written)
            }
        };
        let mark = self.rules.mark(&self.act, &self.offered, base.mark());
        let header = Header::after(base.header(), mark, written, self.rules.nonce(nonce), content.len());
        let expect = self.rules.expect(base);
        self.outstanding.push(header.nonce);
        let value = ValueEnvelope { header: header.clone(), content }.encode();
        self.sent = Some(header);
        NextCall::Write { value, expect }
    }

    fn applied(&mut self, applied: Applied) -> NextCall {
        let header = self.sent.take().expect("a write was sent");
        let expect = self.base.as_ref().map(|base| self.rules.expect(base));
        if expect.is_none_or(|expect| !is_new(&applied.version, &expect)) {
            // A stale writer that saw this version could replace the value.
            let why = format!(
                "the store broke a promise: it gave the write the version {:?}, which is not new. Repair the store",
                applied.version.as_str()
            );
            return self.fail(FenceError::refused(&*self.resource, Reason::Unsupported, why));
        }
        NextCall::Done(Ok(Sighting { version: applied.version, header }))
    }

    fn not_written(&mut self, error: StoreError) -> NextCall {
        let (reason, source) = match error {
            StoreError::Refused(refused) => (refused.reason, refused.source),
            // Not sent, so it can never land.
            StoreError::Throttled(throttled @ Throttled { cause: Some(_), .. }) => {
                (Reason::Unreachable, throttled.into())
            }
            // A proxy may have forwarded it.
            error => {
                self.in_doubt = true;
                self.cause = Some(error.into());
                return NextCall::Read;
            }
        };
        self.outstanding.pop();
        self.fail(FenceError::refused(&*self.resource, reason, source))
    }

    fn not_read(&mut self, error: StoreError) -> NextCall {
        match error {
            StoreError::Refused(refused)
                if self.outstanding.is_empty() || refused.reason != Reason::Unreachable =>
            {
                self.fail(FenceError::refused(&*self.resource, refused.reason, refused.source))
            }
            error => {
                self.cause = Some(error.into());
                NextCall::Read
            }
        }
    }

    /// The write after the base has a fixed number. The nonce of that number shows which write it was.
    fn fate(&self, shown: &Base) -> Fate {
        let Some(base) = self.base.as_ref().filter(|_| !self.outstanding.is_empty()) else {
            return Fate::Dead;
        };
        let replaced = base.header().map_or(0, |header| header.sequence);
        let Some(shown) = shown.header() else {
            return if replaced == 0 { Fate::Pending } else { Fate::Unclear };
        };
        // Another entry with this number: the value was deleted or restored.
        if shown.nonce_of(replaced).is_some_and(|nonce| base.header().is_none_or(|it| it.nonce != nonce)) {
            return Fate::Unclear;
        }
        match shown.nonce_of(replaced + 1) {
            Some(nonce) if self.outstanding.contains(&nonce) => Fate::Landed,
            Some(_) => Fate::Dead,
            None if shown.sequence == replaced => Fate::Pending,
            None => Fate::Unclear,
        }
    }

    /// The error of an entry that has a smaller token than this process has seen, or is missing.
    fn went_back(&self, shown: &Base) -> Option<FenceError> {
        let shown = shown.mark().map_or(Token::ZERO, FencingToken::token);
        let seen = self.highest.as_ref()?.token();
        (shown < seen).then(|| went_back(&self.resource, &self.offered, seen, shown))
    }

    fn unclear(&self) -> FenceError {
        let why = "other writes have replaced it since, and the value no longer shows whether it did";
        FenceError::refused(&*self.resource, Reason::Unreachable, why)
    }

    fn fail(&self, error: FenceError) -> NextCall {
        NextCall::Done(Err(self.error(error)))
    }

    /// The error, or [`FenceError::Unknown`] because of it if a write may have landed.
    fn error(&self, error: FenceError) -> FenceError {
        if self.outstanding.is_empty() {
            return error;
        }
        let cause = match error {
            // Its sentence says that nothing was written.
            FenceError::Refused { source, .. } => source,
            error => error.into(),
        };
        let source = Unsettled { offered: self.offered.clone(), cause };
        FenceError::unknown(&*self.resource, source)
    }
}

impl Base {
    fn header(&self) -> Option<&Header> {
        match self {
            Self::Absent => None,
            Self::Entry { header, .. } => Some(header),
        }
    }

    fn mark(&self) -> Option<&FencingToken> {
        self.header().map(|header| &header.mark)
    }

    fn sighting(self) -> Option<Sighting> {
        match self {
            Self::Absent => None,
            Self::Entry { version, header, .. } => Some(Sighting { version, header }),
        }
    }
}

/// A write that may have landed.
#[derive(Debug, thiserror::Error)]
#[error("the write under token {} of lease {} may have landed: {cause}", offered.token(), offered.name())]
struct Unsettled {
    offered: FencingToken,
    #[source]
    cause: BoxError,
}

/// The error of an entry with a smaller token than before, or without one.
pub(super) fn went_back(resource: &str, offered: &FencingToken, seen: Token, shown: Token) -> FenceError {
    FenceError::WentBack { resource: resource.to_owned(), offered: offered.clone(), seen, shown }
}
