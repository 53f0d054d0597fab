//! A gate in front of a service: requests pass while this node leads, and are turned away otherwise.
//!
//! It has the shape of [tower](https://docs.rs/tower): [`LeaderGateLayer`] wraps a service in a [`LeaderGate`].
//!
//! * While this node leads, requests pass. When the term is over, the response future of a running request is dropped, and
//!   the caller gets [`NotLeader`]. A release waits until the last running request has ended or was dropped.
//! * Otherwise the gate does not call the service. It fails with [`NotLeader`], which names the leader and its address, or
//!   answers with a response that you make of it ([`answering`](LeaderGateLayer::answering)).
//!
//! The gate observes the leader by itself. It names a leader only if the latest read of the record is younger than
//! [`max_age`](LeaderGateLayer::max_age), and never this node itself.

mod follower;
mod layer;
mod not_leader;
mod service;

pub use follower::{Answering, Failing, Follower};
pub use layer::LeaderGateLayer;
pub use not_leader::NotLeader;
pub use service::LeaderGate;

/// An error of any service.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
