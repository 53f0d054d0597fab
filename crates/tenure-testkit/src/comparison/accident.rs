//! Holders that are killed, and holders that are paused.

use std::fmt;
use std::time::{Duration, Instant};

use super::holder::HolderProcess;
use super::{Comparison, LockKind, TTL};
use crate::samples::Samples;

/// Kills of a holder with SIGKILL while a contender waits.
#[derive(Debug)]
pub(super) struct Crash {
    /// From the last renewal to the next grant.
    pub(super) since_renewal: Samples,
    /// From the kill to the next grant.
    since_kill: Samples,
}

impl Crash {
    pub(super) async fn rounds(comparison: &Comparison, url: &str, kind: &LockKind, rounds: u32) -> Self {
        let mut crash = Self {
            since_renewal: Samples::new("from the last renewal of a killed holder to the next grant"),
            since_kill: Samples::new("from the kill to the next grant"),
        };
        let mut next = 0;
        while next < rounds {
            let batch = next..rounds.min(next + AT_ONCE);
            next = batch.end;
            let tasks: Vec<_> = batch
                .map(|round| {
                    let (comparison, url, kind) = (*comparison, url.to_owned(), *kind);
                    tokio::spawn(async move { Self::once(&comparison, &url, &kind, round, rounds).await })
                })
                .collect();
            for task in tasks {
                let (since_renewal, since_kill) = task.await.expect("a crash is measured");
                crash.since_renewal.add(since_renewal);
                crash.since_kill.add(since_kill);
            }
        }
        crash
    }

    async fn once(
        comparison: &Comparison,
        url: &str,
        kind: &LockKind,
        round: u32,
        rounds: u32,
    ) -> (Duration, Duration) {
        let name = format!("crash-{round}");
        let mut holder = HolderProcess::start(kind, &name, url).await;
        // The contender's first read, and the kill, each come at different times since a renewal.
        let period = TTL / 3;
        tokio::time::sleep(period * (round * 5 % rounds) / rounds).await;
        // A standby usually waits for much longer. After four ttl it knows the rhythm of the renewals.
        let late = TTL * 4 + period * round / rounds;
        let mut contender = (comparison.open)(url, kind.name, &name, TTL).await;
        let killed = async {
            tokio::time::sleep(late).await;
            let age = holder.age().await;
            holder.kill();
            (Instant::now(), age)
        };
        let granted = async {
            contender.acquire().await;
            Instant::now()
        };
        let ((killed, age), granted) = tokio::join!(killed, granted);
        (granted - (killed - age), granted - killed)
    }

    pub(super) fn shown(&self, kind: &LockKind) -> String {
        if kind.has_ttl {
            let [median, slowest] =
                [50, 100].map(|percent| self.since_renewal.at(percent).as_secs_f64() / TTL.as_secs_f64());
            format!("{median:.2}, {slowest:.2} ttl")
        } else {
            format!("{:.0?}, {:.0?}", self.since_kill.at(50), self.since_kill.at(100))
        }
    }
}

/// A holder that is paused beyond its ttl, while it works under the lock and a contender waits.
#[derive(Debug)]
pub(super) struct Pause {
    /// From the pause to the grant of the contender, if there was one.
    granted: Option<Duration>,
    /// The holder's report: its belief, the answer of the resource to its write, and the answer to its renewal.
    report: String,
}

impl Pause {
    pub(super) async fn suffer(comparison: &Comparison, url: &str, kind: &LockKind) -> Self {
        let name = "paused";
        let mut holder = HolderProcess::start(kind, name, url).await;
        let mut contender = (comparison.open)(url, kind.name, name, TTL).await;
        holder.pause().await;
        let began = Instant::now();
        let granted = tokio::time::timeout(TTL * 3, contender.acquire()).await.ok().map(|()| began.elapsed());
        if granted.is_some() {
            (comparison.write)(url, name, contender.token()).await;
        }
        Self { granted, report: holder.resume().await }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(granted) = self.granted else {
            return write!(f, "keeps the lock: no contender got it within {:?}", TTL * 3);
        };
        write!(f, "the lock passes on after {:.1} ttl; ", granted.as_secs_f64() / TTL.as_secs_f64())?;
        let parts: Vec<_> = self.report.split(' ').collect();
        f.write_str(match parts[0] {
            "None" => "the holder has no local check; ",
            "Some(false)" => "the holder's local check reports the loss; ",
            _ => "the holder's local check MISSES the loss; ",
        })?;
        f.write_str(match parts[1] {
            "true" => "its late write is accepted; ",
            _ => "the resource refuses its late write by the token; ",
        })?;
        f.write_str(match parts[2] {
            "Some(false)" => "its renewal fails",
            "None" => "it has no renewal",
            _ => "its renewal SUCCEEDS",
        })
    }
}

/// Holders of one lock that are killed at the same time. More of them would measure the load of the machine.
const AT_ONCE: u32 = 6;
