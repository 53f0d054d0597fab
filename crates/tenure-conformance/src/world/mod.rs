//! The surroundings of a check of leases, and of what is built on them.

pub(crate) mod process;
pub(crate) mod wire;

use std::error::Error as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tenure::record::{self, Record};
use tenure::{Coordinator, Error, ErrorKind, Holder, Lease, LeaseSet, Request, SetRequest, Timing};
use tenure_store::{Entry, Expect, Key, Put, Store};

use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;
use process::Process;
use wire::{LateWrite, Wire};

/// The surroundings of a check of leases: processes, time that passes while they act, and the questions of all checks.
///
/// Nothing here waits without a limit, because a lying store may never answer: every wait is a bounded number of short
/// pauses.
pub(crate) struct World<'t> {
    pub(crate) trial: &'t Trial<'t>,
    pub(crate) ttl: Duration,
}

impl<'t> World<'t> {
    /// A world for checks of plain keys, which are refused on a store that may lose acknowledged writes.
    pub(crate) fn for_keys(trial: &'t Trial<'t>) -> Result<Self, Stop> {
        trial.require(trial.promises.allows_plain_keys(), "keeping acknowledged writes")?;
        Self::new(trial)
    }

    /// Ends the check as skipped if the store promises too little for leases.
    pub(crate) fn new(trial: &'t Trial<'t>) -> Result<Self, Stop> {
        let missing = trial.promises.missing_for_leases();
        trial.require(missing.is_empty(), &missing.join(", "))?;
        let max = trial.promises.value_max;
        trial.require(max >= record::RECORD_MAX, &format!("values of {} bytes", record::RECORD_MAX))?;

        let ttl = trial.sizes.ttl.max(trial.promises.write_interval.saturating_mul(INTERVALS));
        let bearable = Timing::new(ttl).and_then(|timing| timing.bearable_for("the store", &trial.promises));
        match bearable {
            Ok(_) => Ok(Self { trial, ttl }),
            Err(error) => Err(Stop::Skipped(error.to_string())),
        }
    }

    // ── processes and leases ────────────────────────────────────────────────────────────────────────────────────

    /// A process on one of the connections.
    pub(crate) async fn process(&self, number: usize) -> Result<Process, Stop> {
        self.process_on(number, self.trial.connection(number)).await
    }

    /// A process on this connection.
    ///
    /// Without the check at connect, which has a separate clause: a store that is refused at connect would show nothing
    /// here.
    pub(crate) async fn process_on(&self, number: usize, store: Arc<dyn Store>) -> Result<Process, Stop> {
        let wire = Wire::to(store);
        let holder = Holder::new(&format!("process-{number}")).expect("a name without surprises");
        let builder = Coordinator::builder().clock(self.trial.harness.clock()).holder(holder);
        let connecting = builder.connect_dangerously_unchecked(wire.clone());
        let coordinator = self.within("connecting", connecting).await?.map_err(failed)?;
        Ok(Process::new(coordinator, wire, self.ttl))
    }

    /// The lease, which must be granted within a few ttls: the combined cost of a dead holder, a late write and a busy
    /// machine.
    pub(crate) async fn granted(&self, request: Request) -> Result<Lease, Stop> {
        let wanting = request.wait(self.patience()).acquire();
        self.within("an acquire", wanting).await?.map_err(failed)
    }

    /// The set, which must be granted within a few ttls.
    pub(crate) async fn all_granted(&self, request: SetRequest) -> Result<LeaseSet, Stop> {
        let wanting = request.wait(self.patience()).acquire();
        self.within("an acquire of a set", wanting).await?.map_err(failed)
    }

    /// Releases the lease. If it cannot be vacated it lapses, and the next acquire waits for that.
    pub(crate) async fn released(&self, lease: Lease) -> CheckResult {
        match self.within("a release", lease.release()).await? {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::Lost | ErrorKind::Unavailable) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Longest wait for a lease that must become free.
    pub(crate) fn patience(&self) -> Duration {
        self.ttl * PATIENCE
    }

    // ── time ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Lets time pass, in steps that are short compared with all deadlines of a keeper.
    pub(crate) async fn pass(&self, span: Duration) {
        let mut left = span;
        while !left.is_zero() {
            let step = self.step().min(left);
            self.trial.harness.pause(step).await;
            left -= step;
        }
    }

    /// One step.
    pub(crate) fn step(&self) -> Duration {
        self.ttl / STEPS_PER_TTL
    }

    /// The result of the future, while time passes. The check fails if there is none within a few ttls.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        future: impl Future<Output = T> + Send,
    ) -> Result<T, Stop> {
        let mut future = pin!(future);
        for _ in 0..STEPS_PER_TTL * ANSWER_TTLS {
            match select(future.as_mut(), pin!(self.trial.harness.pause(self.step()))).await {
                Either::Left((output, _)) => return Ok(output),
                Either::Right(_) => {}
            }
        }
        fail!("{what} had no answer in {:?}", self.ttl * ANSWER_TTLS)
    }

    /// The answer to a question that changes nothing. It is repeated a few times: a server that ends an idle connection
    /// has done nothing wrong.
    pub(crate) async fn ask<T, F>(&self, what: &str, question: impl Fn() -> F) -> Result<T, Stop>
    where
        F: Future<Output = Result<T, Error>> + Send,
    {
        let mut asked = 0;
        loop {
            asked += 1;
            match self.within(what, question()).await? {
                Err(error) if error.kind() == ErrorKind::Unavailable && asked < QUESTIONS_MAX => {}
                answer => return answer.map_err(failed),
            }
        }
    }

    // ── common verifications ────────────────────────────────────────────────────────────────────────────────────

    /// The entry of a key, read over a wire that is never cut.
    pub(crate) async fn entry(&self, key: &Key) -> Result<Entry, Stop> {
        let entry = self.trial.read(self.trial.other(), key).await?;
        entry.ok_or_else(|| Stop::Failed(format!("the record of {key} is gone")))
    }

    /// The record of a key.
    pub(crate) async fn record(&self, key: &Key) -> Result<Record, Stop> {
        record::decode(&self.entry(key).await?.value)
            .map_err(|foreign| Stop::Failed(format!("the record of {key} is none: {foreign}")))
    }

    /// Verifies that the record is that of this lease.
    pub(crate) async fn is_recorded(&self, lease: &Lease) -> CheckResult {
        let (key, record) = (lease.key(), self.record(lease.key()).await?);
        let by = record.holder.as_ref().map_or("no holder", |holder| holder.id());
        ensure!(
            record.is_held() && record.token == lease.token(),
            "{key} should be held by {} with token {}, and the store says: {by}, token {}",
            lease.holder(),
            lease.token(),
            record.token
        );
        Ok(())
    }

    /// Verifies that the holder still has the lease, and can keep it.
    pub(crate) async fn is_kept(&self, lease: &Lease) -> CheckResult {
        self.is_recorded(lease).await?;
        self.within("a renewal", lease.renew()).await?.map_err(failed)?;
        self.is_recorded(lease).await
    }

    /// Carries out writes that were in flight for a long time. Each must be too late.
    pub(crate) async fn deliver_too_late(&self, process: &Process) -> CheckResult {
        let late = process.wire.take_late_writes();
        if late.is_empty() {
            // A holder that wakes up after its deadline correctly sends nothing.
            let busy = "the holder was too late to write: the machine is too busy for this ttl";
            return Err(Stop::Skipped(busy.into()));
        }
        for LateWrite { key, write } in late {
            let put = self.trial.write(self.trial.writer(), &key, &write).await?;
            let Put::Applied(applied) = put else { continue };
            let expected = match &write.expect {
                Expect::Absent => "nothing".to_owned(),
                Expect::Version(version) => format!("version {version}"),
            };
            fail!(
                "a write to {} that expected {expected} arrived late, after something else had been written, and was \
                 applied as version {}",
                key,
                applied.version
            );
        }
        Ok(())
    }
}

/// Verifies that the lease is lost, and reports it in every way.
pub(crate) fn is_lost(lease: &Lease, when: &str) -> CheckResult {
    match lease.check() {
        Err(error) if error.kind() == ErrorKind::Lost => Ok(()),
        Err(error) => fail!("{when}, its check says: {error}"),
        Ok(()) => fail!(
            "{when}, {} still believes that it holds {} with token {}, for {:?}",
            lease.holder(),
            lease.key(),
            lease.token(),
            lease.remaining()
        ),
    }
}

/// Verifies that not both believe that they hold the lease. A lost lease stays lost, so the second check of `a` shows
/// that it believed so throughout.
pub(crate) fn are_apart(a: &Lease, b: &Lease) -> CheckResult {
    let both = a.check().is_ok() && b.check().is_ok() && a.check().is_ok();
    ensure!(
        !both,
        "two owners at once: {} with token {} and {} with token {}",
        a.holder(),
        a.token(),
        b.holder(),
        b.token()
    );
    Ok(())
}

/// Verifies that the later grant has the greater token.
pub(crate) fn is_newer(newer: &Lease, older: tenure::Token, what: &str) -> CheckResult {
    ensure!(
        newer.token() > older,
        "{what}, the token went from {older} to {}: it must be greater for every grant",
        newer.token()
    );
    Ok(())
}

pub(crate) fn failed(error: Error) -> Stop {
    match error.source() {
        Some(source) => Stop::Failed(format!("{error} ({source})")),
        None => Stop::Failed(error.to_string()),
    }
}

/// A step is this fraction of a ttl: a renewal is due after five steps, and has ten more until it is too late.
const STEPS_PER_TTL: u32 = 16;

/// Number of ttls that a contender waits for a lease that must become free.
const PATIENCE: u32 = 4;

/// Maximum number of ttls for any answer: more than the patience, so that the answer says why there is no lease.
const ANSWER_TTLS: u32 = 6;

/// The time for a retry is a tenth of the ttl. On a store with a minimum interval between two writes it must be as long
/// as that.
const INTERVALS: u32 = 10;

/// Number of times that a question is asked.
const QUESTIONS_MAX: u32 = 4;
