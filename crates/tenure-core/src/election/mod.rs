//! Leader election over one lease, without I/O, clock or randomness: inputs in, effects out.
//!
//! A leader is the holder of an ordinary lease, granted by the ordinary [`machine`](crate::machine). This module has what
//! comes on top of it:
//!
//! ```text
//!            granted                    lost
//!   Seeking ─────────▶ Leading ─────────────────────────────────▶ Seeking
//!      ▲                  │ released, revoked                        ▲
//!      │                  ▼                                          │
//!      │          LettingOthers ── one poll period, or another grant ┘
//!      └── Pausing ◀── failed
//! ```
//!
//! * [`Campaigner`]: the act of a node after each grant, each end of a term and each error.
//! * [`HealthWatch`]: healthy, at risk, failed: when a leader resigns because its health check fails.
//! * [`LeaderFilter`]: the reports of an observer: the present leader first, then each change, never an older token.
//!
//! Their decisions are in [`ElectionRules`], one named function each.

mod campaign_effect;
mod campaign_input;
mod campaigner;
mod health_watch;
mod leader_filter;
mod rules;
mod term_end;

pub use campaign_effect::CampaignEffect;
pub use campaign_input::CampaignInput;
pub use campaigner::Campaigner;
pub use health_watch::{HealthState, HealthWatch};
pub use leader_filter::{LeaderFilter, LeaderReport};
pub use rules::{ElectionRules, Sign};
pub use term_end::TermEnd;
