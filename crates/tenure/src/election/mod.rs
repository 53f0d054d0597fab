//! Leader election: a lease that is won, kept and won again, and its observers.

mod campaign;
#[cfg(feature = "tower")]
pub mod gate;
mod health_check;
mod health_monitor;
mod leader;
mod leader_view;
mod leader_watcher;
mod leaders;
mod ran;
mod read_pace;
mod seat;
mod term;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::election::Campaigner;
use tenure_core::machine::{AcquireParams, Patience};
use tenure_core::{Holder, Timing};
use tenure_store::Key;

pub use campaign::Campaign;
pub use leader::Leader;
pub use leaders::Leaders;
pub use ran::Ran;
pub use term::Term;

use crate::keeper::LastError;
use crate::observe::Observers;
use crate::{Error, ErrorKind, Request};
use campaign::CampaignParts;
use health_check::HealthCheck;
use health_monitor::HealthMonitor;
use leader_view::LeaderView;
use read_pace::ReadPace;
use seat::Seat;

/// An election: one of its nodes leads at a time. Cheap to clone; clones share the term of this node.
///
/// A leader is the holder of the lease with the name of the election. It announces itself only with the conditional
/// write that grants the lease, and only that write makes it the leader: a record that names this node does not.
///
/// ```
/// use tenure::store::Memory;
/// use tenure::{Coordinator, Holder, Ran};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tenure::Error> {
/// let coordinator = Coordinator::connect(Memory::new()).await?;
/// let node = Holder::new("web-1")?.at("http://10.0.0.1:8080")?;
/// let election = coordinator.election("billing")?.holder(node);
///
/// let mut campaign = election.campaign()?;
/// let term = campaign.next().await?; // waits until this node leads
/// assert!(election.is_leader());
/// term.run(async { println!("leading with token {}", term.token()) }).await?;
///
/// let leader = election.observe()?.next().await?.expect("this node leads");
/// assert_eq!(leader.address(), Some("http://10.0.0.1:8080"));
///
/// term.resign().await?;
/// assert_eq!(election.run_if_leader(async { "never" }).await?, Ran::Skipped);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until its campaign or its observer is polled"]
pub struct Election {
    request: Request,
    observers: Arc<Observers>,
    health: Option<HealthCheck>,
    seat: Arc<Seat>,
    failures: Arc<LastError>,
}

impl Election {
    pub(crate) fn new(request: Request, observers: Arc<Observers>) -> Self {
        let failures = Arc::new(LastError::default());
        let seat = Arc::new(Seat::new(request.connection().clone()));
        let request = request.report_failures(Arc::clone(&failures));
        Self { request, observers, health: None, seat, failures }
    }

    /// Sets the ttl of the terms, with the default timing for it. Default: [`Request::DEFAULT_TTL`].
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.request = self.request.ttl(ttl);
        self
    }

    /// Sets all durations.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.request = self.request.timing(timing);
        self
    }

    /// Sets the name, address and labels that this node announces when it leads, instead of the coordinator's default.
    /// Two nodes may have the same name: their tokens differ.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.request = self.request.holder(holder);
        self
    }

    /// A small value that this node announces when it leads. It stays in the record after the term.
    pub fn value(mut self, value: &str) -> Self {
        self.request = self.request.value(value);
        self
    }

    /// Ends a term at the first failed renewal, instead of at the deadline.
    pub fn strict(mut self) -> Self {
        self.request = self.request.strict();
        self
    }

    /// Couples leadership to the health of this node: `true` means healthy.
    ///
    /// The node campaigns only while the check is healthy. A leader whose check is unhealthy, panics, or does not answer until
    /// the next one is due, is at risk. When that has lasted for `limit`, it resigns.
    ///
    /// The check runs on a thread of its own, in each renewal period, or four times per `limit` if that is more often. It may
    /// block. It also works while the executor of the program is blocked, so it can test the executor, too.
    pub fn health_check(mut self, limit: Duration, check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.health = Some(HealthCheck { limit, check: Arc::new(check) });
        self
    }

    /// Name of the election: the key of its lease.
    pub fn name(&self) -> &Key {
        self.request.key()
    }

    /// A campaign of this node. Fails if the durations or the value cannot be used on this store.
    ///
    /// A node needs one campaign. Two campaigns of one process compete like those of two nodes.
    pub fn campaign(&self) -> Result<Campaign, Error> {
        let AcquireParams { timing, holder, .. } = self.request.parse(Patience::Forever)?;
        let connection = self.request.connection();
        let start = |check| HealthMonitor::start(check, &timing, connection, Arc::clone(&self.seat));
        Ok(Campaign::new(CampaignParts {
            request: self.request.clone(),
            campaigner: Campaigner::new(Arc::clone(holder.id()), timing),
            seat: Arc::clone(&self.seat),
            failures: Arc::clone(&self.failures),
            health: self.health.clone().map(start),
            leaders: self.observe()?,
        }))
    }

    /// The leaders: the present one first, then every change. Observing needs no campaign. Fails if the durations cannot be
    /// used on this store.
    pub fn observe(&self) -> Result<Leaders, Error> {
        let pace = ReadPace::of(&self.request.parse(Patience::Forever)?);
        let connection = self.request.connection().clone();
        Ok(Leaders::new(connection, Arc::clone(&self.observers), self.name().clone(), pace))
    }

    /// True while this node leads, by a campaign of this election or of a clone. It is computed from the clock at the
    /// call, and costs little more than one clock read.
    ///
    /// A node can be paused after the answer and before its next write. Only the token, checked by the resource, protects
    /// from that.
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.seat.is_held()
    }

    /// Runs `work` if this node leads, and skips it otherwise. The work is polled only while this node leads, and dropped
    /// when it no longer does; then the call fails with an error of kind [`Lost`](ErrorKind::Lost).
    pub async fn run_if_leader<T>(&self, work: impl Future<Output = T>) -> Result<Ran<T>, Error> {
        match self.seat.held() {
            Some(lease) => lease.run(work).await.map(Ran::Done),
            None => Ok(Ran::Skipped),
        }
    }

    /// Resigns if this node leads, and waits until the next contender can be granted. True if it led.
    ///
    /// The campaign of this node continues: it lets the others try first.
    pub async fn resign(&self) -> Result<bool, Error> {
        let Some(lease) = self.seat.held() else { return Ok(false) };
        match lease.release().await {
            Ok(()) => Ok(true),
            // It was lost in this moment.
            Err(error) if error.kind() == ErrorKind::Lost => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Error of the latest failed call of the campaign or of the present term; `None` if the latest call succeeded.
    pub fn last_error(&self) -> Option<Arc<str>> {
        self.failures.get()
    }

    /// Leads again and again: runs `work` once per term, until `shutdown` completes.
    ///
    /// * When the work returns `Ok`, this node resigns, lets the others try first, and campaigns again.
    /// * When the term is lost, the work is dropped, and the node campaigns again.
    /// * When the work returns an error, this node resigns, and the call returns that error. After a panic of the work it
    ///   resigns, too.
    /// * When `shutdown` completes, the work is dropped, and the lease is released. The call does not wait for the ttl,
    ///   unless the store cannot be reached.
    /// * An error that only an operator can resolve ends the loop: see [`Campaign::next`].
    ///
    /// In every case [`is_leader`](Self::is_leader) is false when the call has returned. If the program exits afterwards, call
    /// [`Coordinator::shutdown`](crate::Coordinator::shutdown) first: a grant that was requested just before `shutdown` may
    /// still have to be vacated.
    ///
    /// ```no_run
    /// # async fn example(election: tenure::Election) -> Result<(), tenure::Error> {
    /// # async fn ctrl_c() {}
    /// # async fn dispatch(_: tenure::Token) -> Result<(), tenure::Error> { Ok(()) }
    /// election.run(ctrl_c(), |term| async move { dispatch(term.token()).await }).await
    /// # }
    /// ```
    pub async fn run<W, E>(
        &self,
        shutdown: impl Future<Output = ()>,
        mut work: impl FnMut(Term) -> W,
    ) -> Result<(), E>
    where
        W: Future<Output = Result<(), E>>,
        E: From<Error>,
    {
        let mut shutdown = pin!(shutdown);
        let mut campaign = self.campaign()?;
        loop {
            let term = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                term = campaign.next() => EndedTerm(term?),
            };
            let done = tokio::select! {
                biased;
                () = &mut shutdown => None,
                done = term.0.run(work(term.0.clone())) => Some(done),
            };
            match done {
                None => return ended(term.0.resign().await),
                Some(Ok(Ok(()))) => ended(term.0.resign().await)?,
                Some(Ok(Err(error))) => {
                    // The error of the work is the one to report. If the release fails, the lease lapses.
                    let _ = term.0.resign().await;
                    return Err(error);
                }
                // Lost: the campaign continues.
                Some(Err(_)) => {}
            }
        }
    }
}

/// A term that is over when this is dropped, also if the work has kept a clone of it.
struct EndedTerm(Term);

impl Drop for EndedTerm {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The outcome of a resignation. A term that was lost already is over, too.
fn ended<E: From<Error>>(resigned: Result<(), Error>) -> Result<(), E> {
    match resigned {
        Err(error) if error.kind() != ErrorKind::Lost => Err(error.into()),
        _ => Ok(()),
    }
}
