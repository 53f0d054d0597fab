//! Several leases that a user holds at once.

mod driver;
mod loss;
mod members;
mod request;
mod seeker;
mod work;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::Token;
use tenure_store::Key;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use loss::SetLoss;
pub use request::SetRequest;

use crate::{Error, Lease};
use members::Members;

/// Several leases, held at once. Share it by reference. Dropping it releases them.
///
/// The set is held while all of its leases are: the belief ends when the first of them does, and the others are released
/// then. Each call computes that from the clock.
///
/// Each lease keeps its own token: send the token of the lease whose resource you write to.
///
/// ```
/// use tenure::{Coordinator, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tenure::Error> {
/// # async fn transfer(_: tenure::Token, _: tenure::Token) {}
/// let coordinator = Coordinator::connect(Memory::new()).await?;
/// let both = coordinator.all_of(["accounts/7", "accounts/4"])?.acquire().await?;
/// let [Some(four), Some(seven)] = ["accounts/4", "accounts/7"].map(|key| both.token(key)) else { panic!() };
/// both.run(transfer(seven, four)).await?;
/// both.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a set of leases releases all of them"]
pub struct LeaseSet {
    members: Arc<Members>,
    /// To the driver, which ends the leases.
    release: mpsc::UnboundedSender<ReleaseReply>,
}

/// Channel for the answer to a release.
type ReleaseReply = oneshot::Sender<Result<(), Error>>;

impl LeaseSet {
    /// The leases, in the order of their keys, in which they were acquired.
    pub fn leases(&self) -> &[Lease] {
        &self.members.leases
    }

    /// The key and the token of each lease, in the order of the keys.
    pub fn tokens(&self) -> impl Iterator<Item = (&Key, Token)> {
        self.leases().iter().map(|lease| (lease.key(), lease.token()))
    }

    /// The token of one lease; `None` if the set does not have it.
    pub fn token(&self, key: impl AsRef<str>) -> Option<Token> {
        self.tokens().find(|(name, _)| name.as_str() == key.as_ref()).map(|(_, token)| token)
    }

    /// Time until the first deadline; zero once the set is lost.
    pub fn remaining(&self) -> Duration {
        let first = self.leases().iter().map(Lease::remaining).min().unwrap_or_default();
        if self.members.is_held() { first } else { Duration::ZERO }
    }

    /// `Ok` while all leases are held, otherwise an error of kind [`Lost`](crate::ErrorKind::Lost) that names the first
    /// that was not. It costs one [`Lease::check`] per lease.
    pub fn check(&self) -> Result<(), Error> {
        if self.members.is_held() { Ok(()) } else { Err(self.members.lost_error()) }
    }

    /// Waits for the first loss, and returns the lease and the cause.
    pub async fn lost(&self) -> SetLoss {
        if self.members.is_held() {
            self.members.cancelled.cancelled().await;
        }
        self.members.loss()
    }

    /// A token that is cancelled when the set is lost, for spawned and blocking work. Cancelling it yourself has no
    /// effect on the leases.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.members.cancelled.child_token()
    }

    /// Runs `work` while all leases are held: polls it only then, and drops it when the first is lost. The error names
    /// that lease and the cause.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        work::SetWork::new(&self.members, work).await
    }

    /// Releases all leases, each as [`Lease::release`] does, and waits until the next contenders can be granted.
    ///
    /// The belief in all of them ends at the first poll. If a lease cannot be vacated it lapses by its ttl, and the
    /// error says so. Dropping the future changes nothing: the keeper continues the release.
    pub async fn release(&self) -> Result<(), Error> {
        self.check()?;
        self.members.latch(SetLoss::released(&self.members.leases[0]));
        let (reply, answer) = oneshot::channel();
        let _ = self.release.send(reply);
        answer.await.unwrap_or_else(|_| Err(self.members.lost_error()))
    }
}

impl fmt::Debug for LeaseSet {
    /// One line, as in `LeaseSet(held: [Lease(a on memory:1, token 7, held by host-a), …])`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members.is_held() {
            f.write_str("LeaseSet(held: ")?;
        } else {
            write!(f, "LeaseSet(lost, {}: ", self.members.loss())?;
        }
        f.debug_list().entries(self.leases()).finish()?;
        f.write_str(")")
    }
}
