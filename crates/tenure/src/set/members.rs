use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use tenure_core::machine::{Lost, Standard};
use tenure_core::set::{SetMachine, SetRules};
use tokio_util::sync::CancellationToken;

use super::SetLoss;
use crate::{Error, ErrorKind, Lease};

/// The leases of a set, and the one belief in all of them.
#[derive(Debug)]
pub(super) struct Members {
    /// In the order of their keys. There is at least one.
    pub(super) leases: Vec<Lease>,
    /// Cancelled when the belief has ended.
    pub(super) cancelled: CancellationToken,
    /// The first loss. Once set, the set is lost for good.
    first_loss: OnceLock<SetLoss>,
    store: Arc<str>,
}

impl Members {
    pub(super) fn new(leases: Vec<Lease>, store: Arc<str>) -> Self {
        Self { leases, cancelled: CancellationToken::new(), first_loss: OnceLock::new(), store }
    }

    /// True if every lease is held at this instant.
    pub(super) fn is_held(&self) -> bool {
        if self.first_loss.get().is_some() {
            return false;
        }
        let mut held = [false; SetMachine::MEMBERS_MAX];
        for (held, lease) in held.iter_mut().zip(&self.leases) {
            *held = lease.check().is_ok();
        }
        let believes = Standard.believes(&held[..self.leases.len()]);
        if !believes {
            self.latch(self.find_loss());
        }
        believes
    }

    /// Ends the belief for good, and sets the cause unless one is set.
    ///
    /// A forked copy of the process must not touch the locks of the token. Its leases stay lost without that.
    pub(super) fn latch(&self, loss: SetLoss) {
        if loss.why != Lost::Forked {
            self.first_loss.get_or_init(|| loss);
            self.cancelled.cancel();
        }
    }

    /// The first loss.
    pub(super) fn loss(&self) -> SetLoss {
        match self.first_loss.get() {
            Some(loss) => loss.clone(),
            None => {
                let found = self.find_loss();
                self.latch(found.clone());
                self.first_loss.get().cloned().unwrap_or(found)
            }
        }
    }

    pub(super) fn lost_error(&self) -> Error {
        let loss = self.loss();
        let keys: Vec<_> = self.leases.iter().map(|lease| lease.key().as_str()).collect();
        let (holder, keys) = (self.leases[0].holder(), keys.join(", "));
        let sentence =
            format!("the set of leases {keys} of {holder} on {} is lost, stop acting: {loss}", self.store);
        Error::new(ErrorKind::Lost, sentence)
    }

    /// The first lease in the order of the keys that is lost.
    fn find_loss(&self) -> SetLoss {
        let lost = |lease: &Lease| lease.lost().now_or_never().map(|why| SetLoss::new(lease, why));
        // Without the keeper, which ends all leases, none may have received the loss yet.
        self.leases.iter().find_map(lost).unwrap_or_else(|| SetLoss::new(&self.leases[0], Lost::KeeperGone))
    }
}
