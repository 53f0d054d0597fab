use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use tenure::clock::{BootClock, Clock};
use tenure_conformance::{Step, Suite};
use tenure_core::check::check_declared;
use tenure_store::{Expect, Guarantees, Key, Put, Reason, Refused, Store, StoreError};

use crate::cleaning::{self, CleanUp};
use crate::harness::ProbeHarness;
use crate::judge::{self, Judged, Weight};
use crate::ledger::{Calls, Ledger};
use crate::measure::{Measured, Stopwatch};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::qualification::{Fitness, Qualification};
use crate::quoting::{self, Quoting};
use crate::scratch_area::{ScratchArea, ScratchName};
use crate::{Advice, ProbeError, ttl};

/// The long qualification of a store. It writes only in its own scratch area, `.tenure/probe/…`.
#[derive(Debug)]
pub struct Probe {
    plan: Plan,
    scratch_name: ScratchName,
    clock: Arc<dyn Clock>,
    areas: Vec<Arc<ScratchArea>>,
    ledger: Arc<Ledger>,
    other_etags: Option<OtherEtags>,
}

/// The same store with the other form of ETags.
#[derive(Debug)]
struct OtherEtags {
    scratch_area: ScratchArea,
    bare: bool,
}

impl Probe {
    /// Opens the connections that the probe needs, each with a call of `open`. Sends nothing yet.
    ///
    /// `run` distinguishes this probe from others that start in the same second.
    pub fn open<E>(plan: Plan, run: u128, open: impl Fn() -> Result<Arc<dyn Store>, E>) -> Result<Self, E> {
        Self::open_at(plan, run, Arc::new(BootClock::new()), open)
    }

    /// Like [`open`](Self::open), with another clock than the machine's.
    pub fn open_at<E>(
        plan: Plan,
        run: u128,
        clock: Arc<dyn Clock>,
        open: impl Fn() -> Result<Arc<dyn Store>, E>,
    ) -> Result<Self, E> {
        let scratch_name = ScratchName::new(clock.wall().as_millis() / 1_000, run);
        let ledger = Arc::new(Ledger::default());
        let areas = (0..Plan::CONNECTIONS)
            .map(|_| Ok(Arc::new(ScratchArea::new(open()?, scratch_name.clone(), Arc::clone(&ledger)))))
            .collect::<Result<_, E>>()?;
        Ok(Self { plan, scratch_name, clock, areas, ledger, other_etags: None })
    }

    /// Also tests the same store with the other form of ETags: `bare`, or with quotes.
    #[must_use]
    pub fn with_other_etags(mut self, store: Arc<dyn Store>, bare: bool) -> Self {
        let scratch_area = ScratchArea::new(store, self.scratch_name.clone(), Arc::clone(&self.ledger));
        self.other_etags = Some(OtherEtags { scratch_area, bare });
        self
    }

    /// Approximate number of calls that the probe will make, including clean-up.
    pub fn calls_expected(&self) -> u64 {
        self.plan.calls()
    }

    /// The guarantees that the store declares.
    pub fn guarantees(&self) -> Guarantees {
        self.areas[0].store.guarantees()
    }

    /// Number of calls made so far.
    pub fn calls(&self) -> Calls {
        self.ledger.calls()
    }

    /// Prefix of the names of everything that the probe writes.
    pub fn scratch_area(&self) -> &str {
        self.scratch_name.as_str()
    }

    /// Runs all checks and measurements, and reports its progress. Whatever the result, [clean up](Self::clean_up)
    /// afterwards.
    ///
    /// The future may be dropped at any time.
    pub async fn run(&self, tell: &(dyn Fn(Progress) + Sync)) -> Result<Qualification, ProbeError> {
        let store = &self.areas[0];
        if let Err(error) = check_declared(&*store.store) {
            let why = error.to_string().replacen(&self.name(), "it", 1);
            return Err(ProbeError::Refused { store: self.name(), why });
        }
        let suite = self.suite();
        let steps = Steps { done: AtomicUsize::new(0), of: suite.checks() + STEPS_BESIDE, tell };

        steps.begin("connection", "a first read and a first write");
        self.reach().await?;
        steps.begin("versions", "equal bytes, and how ETags are written");
        let equal_bytes_share_a_version = self.equal_bytes().await;
        let quoting = self.quoting().await;
        let checks = self.check(&suite, &steps).await?;

        let mut qualification = Qualification {
            store: self.name(),
            checks,
            quoting,
            equal_bytes_share_a_version,
            measured: None,
            advice: None,
            fitness: Fitness::Fit,
        };
        qualification.fitness = fitness(&qualification);
        if !matches!(qualification.fitness, Fitness::Refused(_)) {
            let measured = self.measure(&steps).await?;
            qualification.advice = ttl::advise(&self.name(), &store.store.guarantees(), &measured);
            qualification.measured = Some(measured);
            qualification.fitness = fitness(&qualification);
        }
        Ok(qualification)
    }

    /// Removes everything that this probe wrote, as far as the store permits, and the remains of probes of earlier
    /// days. Takes no longer than `within`.
    pub async fn clean_up(&self, within: Duration) -> CleanUp {
        let mut done = CleanUp { scratch_area: self.scratch_name.as_str().to_owned(), ..CleanUp::default() };
        let end = self.clock.sleep_until(self.clock.now() + within);
        let (written, now) = (self.ledger.written(), self.clock.wall());
        let cleaning = Box::pin(cleaning::clean(&self.areas[0], &self.scratch_name, written, now, &mut done));
        let late = matches!(select(cleaning, end).await, Either::Right(_));
        if late {
            done.why = Some(format!("there was no time for more: it took longer than {within:?}"));
        }
        done
    }

    fn name(&self) -> String {
        self.areas[0].to_string()
    }

    fn suite(&self) -> Suite {
        Suite::new(1)
            .only_contract()
            .racers(self.plan.racers)
            .rounds(self.plan.rounds)
            .listed(Plan::LISTED)
            .connections(Plan::CONNECTIONS)
            .longest_key(self.scratch_name.longest_key())
    }

    /// Distinguishes a store that cannot be used at all from one that breaks the contract.
    async fn reach(&self) -> Result<(), ProbeError> {
        let (store, key) = (&self.areas[0], key("first"));
        let mut tries = 0;
        loop {
            let first = async || {
                store.get(&key).await?;
                // It does not matter whether the write was applied: the store accepted it.
                let _ = store.put(&key, "the first write".into(), Expect::Absent).await?;
                // The read may show that the store must not be used.
                store.get(&key).await
            };
            let Err(error) = first().await else { return Ok(()) };
            tries += 1;
            let hopeless = matches!(
                &error,
                StoreError::Refused(Refused { reason, .. }) if *reason != Reason::Unreachable
            );
            if hopeless || tries == REACH_TRIES {
                return Err(ProbeError::of(self.name(), &error));
            }
            self.clock.sleep_until(self.clock.now() + REACH_PAUSE).await;
        }
    }

    /// Runs every check of the contract.
    async fn check(&self, suite: &Suite, steps: &Steps<'_>) -> Result<Vec<Judged>, ProbeError> {
        let harness = ProbeHarness::new(&self.areas, &self.ledger, &self.clock);
        let report = suite
            .run_telling(&harness, &|step| {
                if let Step::Begun { clause, check } = step {
                    steps.begin(judge::clause(clause).title, check);
                }
                match self.ledger.lasting_silence() {
                    Some(_) => ControlFlow::Break(()),
                    None => ControlFlow::Continue(()),
                }
            })
            .await;
        self.check_store_answered()?;
        Ok(report.findings.into_iter().map(Judged::of).collect())
    }

    /// Fails if the store was unavailable: failures during that time say nothing about it.
    fn check_store_answered(&self) -> Result<(), ProbeError> {
        match self.ledger.lasting_silence() {
            Some(last) => {
                let why = format!("it stopped answering; its last error: {last}");
                Err(ProbeError::Unavailable { store: self.name(), why })
            }
            None => Ok(()),
        }
    }

    async fn equal_bytes(&self) -> Option<bool> {
        let (store, key, value) = (&self.areas[0], key("equal"), Bytes::from("always the same"));
        let Ok(Put::Applied(first)) = store.put(&key, value.clone(), Expect::Absent).await else {
            return None;
        };
        let again = Expect::Version(first.version.clone());
        let Ok(Put::Applied(second)) = store.put(&key, value, again).await else { return None };
        Some(first.version == second.version)
    }

    async fn quoting(&self) -> Option<Quoting> {
        let other = self.other_etags.as_ref()?;
        let used = quoting::taken(&*self.areas[0], &key("quoting-as-used")).await;
        let tried = quoting::taken(&other.scratch_area, &key("quoting-otherwise")).await;
        let (quoted, bare) = if other.bare { (used, tried) } else { (tried, used) };
        Some(Quoting { quoted, bare, bare_is_used: !other.bare })
    }

    async fn measure(&self, steps: &Steps<'_>) -> Result<Measured, ProbeError> {
        let mut stopwatch = Stopwatch::new(&*self.areas[0], &self.clock, self.plan.samples);
        steps.begin("measuring", "how long calls take, one at a time");
        let [read, create, replace] = stopwatch.latencies().await;
        steps.begin("measuring", "how often one key can be written");
        let rate = stopwatch.rate().await;
        self.check_store_answered()?;
        Ok(Measured { read, create, replace, rate, clock: stopwatch.seen() })
    }
}

/// Reports the progress.
struct Steps<'a> {
    done: AtomicUsize,
    of: usize,
    tell: &'a (dyn Fn(Progress) + Sync),
}

impl Steps<'_> {
    fn begin(&self, title: &'static str, step: &'static str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed);
        (self.tell)(Progress { done, of: self.of, title, step });
    }
}

/// The final result, from everything found so far.
fn fitness(found: &Qualification) -> Fitness {
    let mut refused = judge::reasons(&found.checks, Weight::Refuses);
    if !refused.is_empty() {
        let hint = found.quoting.as_ref().filter(|quoting| quoting.is_the_wrong_way());
        if let Some(quoting) = hint {
            refused.insert(0, quoting.sentence());
        }
        return Fitness::Refused(refused);
    }
    let mut limits = judge::reasons(&found.checks, Weight::Limits);
    if let Some(measured) = &found.measured {
        limits.extend(measured.clock.limit());
        limits.extend(slower_than_needed(measured, found.advice.as_ref()));
    }
    if limits.is_empty() { Fitness::Fit } else { Fitness::FitWithLimits(limits) }
}

fn slower_than_needed(measured: &Measured, advice: Option<&Advice>) -> Vec<String> {
    let mut limits = Vec::new();
    let rate = &measured.rate;
    if rate.throttled > 0 {
        limits.push(format!(
            "it throttled {} of {} writes of one key in a row: do not use a shorter ttl than recommended",
            rate.throttled,
            rate.writes + rate.throttled + rate.failed
        ));
    }
    match advice {
        Some(advice) => limits.extend(advice.limit.clone()),
        None => limits.push("no ttl of up to five minutes has renewals that it can handle".to_owned()),
    }
    limits
}

fn key(name: &str) -> Key {
    Key::parse(name).expect("the names here are keys")
}

/// The steps besides the checks: the first call, versions, and the two measurements.
const STEPS_BESIDE: usize = 4;

/// Tolerates a server that is still starting, or a connection that was just closed.
const REACH_TRIES: u32 = 3;

const REACH_PAUSE: Duration = Duration::from_millis(500);
