use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use tenure_core::record::{Nonce, Ttl};
use tenure_core::{Drift, Holder, Token, machine};
use tenure_store::Key;

use super::secret::Secret;
use crate::clock::{Clock, Domain, Instant};
use crate::host::checksum::checksum;
use crate::{Error, ErrorKind};

/// A lease in writing. With it, a process continues a term that another process of this machine was granted.
///
/// [`Request::acquire_handle`](crate::Request::acquire_handle) returns one,
/// [`Coordinator::renew`](crate::Coordinator::renew) takes it and returns the next, and
/// [`Coordinator::release`](crate::Coordinator::release) ends it. Each handle is valid for one of them: of two copies,
/// the one that is used first counts.
///
/// It carries a secret, of which the record has only a hash, so that a process that can read the record cannot renew or
/// release it by mistake. So it has no `Display`; [`reveal`](Self::reveal) is explicit.
///
/// ```
/// use tenure::{Coordinator, Handle, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tenure::Error> {
/// let coordinator = Coordinator::connect(Memory::new()).await?;
/// let text = coordinator.lease("billing")?.acquire_handle().await?.reveal();
/// let handle: Handle = text.parse()?; // in another process
/// let next = coordinator.renew(&handle).await?;
/// assert_eq!(next.token(), handle.token());
/// coordinator.release(&next).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) store: Arc<str>,
    pub(crate) key: Key,
    pub(crate) holder: Arc<Holder>,
    /// Clock domain of the deadline.
    pub(crate) domain: Domain,
    pub(crate) term: machine::TermRef,
    /// Drift of the grant: renewals use the same.
    pub(crate) drift: Drift,
    pub(crate) secret: Secret,
}

impl Handle {
    /// Prefix of every handle. It distinguishes handles from other text, and this format from later ones.
    pub const PREFIX: &str = "tenure1_";

    /// The handle as a text of one word, including its secret. Store it where only its owner can read it.
    pub fn reveal(&self) -> String {
        let Self { store, key, holder, domain, term, drift, secret } = self;
        let written = HandleText {
            store: store.to_string(),
            key: key.to_string(),
            holder: holder.id().to_string(),
            token: term.token.get(),
            clock: domain.to_string(),
            deadline: term.deadline.as_nanos(),
            ttl: term.ttl.as_millis(),
            drift: drift.ppm(),
            term: term.term.to_string(),
            nonce: term.nonce.to_string(),
            secret: secret.reveal(),
        };
        let mut bytes = serde_json::to_vec(&written).expect("numbers and texts can be written");
        bytes.extend(checksum(&[&bytes]).to_be_bytes());
        format!("{}{}", Self::PREFIX, BASE64.encode(bytes))
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Name of the store.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// The holder. Informational.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// The token. Send it with every write.
    pub fn token(&self) -> Token {
        self.term.token
    }

    /// Ttl of the lease.
    pub fn ttl(&self) -> Ttl {
        self.term.ttl
    }

    /// Time until the deadline. Zero after it, and on another clock than that of the deadline, such as after a restart
    /// of the machine.
    pub fn remaining(&self, clock: &dyn Clock) -> Duration {
        if self.is_of(clock) { self.term.deadline.since(clock.now()) } else { Duration::ZERO }
    }

    /// True if the deadline is on this clock.
    ///
    /// A deadline further away than the ttl is on no clock of this machine, even if the domain is equal: a virtual
    /// machine that was reset to an earlier state keeps its domain.
    pub fn is_of(&self, clock: &dyn Clock) -> bool {
        clock.domain().as_ref() == Some(&self.domain)
            && self.term.deadline <= clock.now() + self.term.ttl.as_duration()
    }

    #[cfg(feature = "simulation")]
    pub(crate) fn with_other_secret(&self) -> Self {
        Self { secret: Secret::new(crate::host::entropy::draw()), ..self.clone() }
    }

    fn read(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text).ok()?;
        let (json, sum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        if checksum(&[json]).to_be_bytes() != sum {
            return None;
        }
        let written: HandleText = serde_json::from_slice(json).ok()?;
        Some(Self {
            store: written.store.into(),
            key: Key::parse(&written.key).ok()?,
            holder: Arc::new(Holder::new(&written.holder).ok()?),
            domain: Domain::parse(&written.clock)?,
            term: machine::TermRef {
                token: Token::new(written.token)?,
                term: Nonce::parse(&written.term)?,
                nonce: Nonce::parse(&written.nonce)?,
                ttl: Ttl::from_millis(written.ttl)?,
                deadline: Instant::from_nanos(written.deadline),
            },
            drift: Drift::from_ppm(written.drift)?,
            secret: Secret::parse(&written.secret)?,
        })
    }
}

impl FromStr for Handle {
    type Err = Error;

    /// Parses the output of [`reveal`](Handle::reveal). The error never repeats the text.
    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = |what: &str| Error::new(ErrorKind::Invalid, what);
        let Some(rest) = text.strip_prefix(Self::PREFIX) else {
            return Err(invalid(
                "this is not a handle: use the text of the latest acquire or renew, which begins with \
                 tenure1_",
            ));
        };
        Self::read(rest).ok_or_else(|| {
            invalid(
                "the handle is damaged (cut short or edited): use the complete text of the latest acquire or renew, \
                 or wait until the lease has run out",
            )
        })
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("store", &self.store)
            .field("key", &self.key)
            .field("holder", &self.holder.id())
            .field("token", &self.term.token)
            .finish_non_exhaustive()
    }
}

/// Serialized form of a handle.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandleText {
    store: String,
    key: String,
    holder: String,
    token: u64,
    clock: String,
    deadline: u64,
    ttl: u64,
    drift: u32,
    term: String,
    nonce: String,
    secret: String,
}
