use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure::Token;
use tenure::clock::{BootClock, Clock, Instant};

use super::event::{DemoEvent, Happening};
use super::ledger::Ledger;
use super::outcome::Outcome;
use super::output::DemoOutput;
use super::plan::DemoPlan;
use super::step::{Step, Task, WorkerName};
use super::tally::Tally;
use super::worker_process::WorkerProcess;
use crate::duration;
use crate::exit::{self, Failure};

/// One play of the accident, with or without the fence.
pub(super) struct Round<'a> {
    plan: DemoPlan,
    fenced: bool,
    directory: PathBuf,
    output: &'a DemoOutput,
    began: Instant,
    a: Actor,
    b: Actor,
    b_has_task: bool,
    pause: Pause,
    /// Rows that were written, by the reports of the workers.
    written: BTreeSet<u32>,
    refused: u32,
}

/// A worker, and what the demo knows of it.
struct Actor {
    process: WorkerProcess,
    token: Option<Token>,
    /// True once it has read the ledger, and knows which rows it writes.
    has_read: bool,
    is_lost: bool,
    /// True once it writes no more rows.
    is_done: bool,
    has_exited: bool,
}

/// The pause of worker A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    NotYet,
    /// Since then it is stopped.
    Since(Instant),
    /// It is over. `taken_over`: B had taken over and read the ledger before.
    Over {
        taken_over: bool,
    },
}

impl<'a> Round<'a> {
    /// Starts both workers. They wait for their tasks.
    pub(super) fn start(
        plan: DemoPlan,
        fenced: bool,
        scratch: &Path,
        output: &'a DemoOutput,
    ) -> Result<Self, Failure> {
        let directory = scratch.join(if fenced { "with-fence" } else { "without-fence" });
        std::fs::create_dir(&directory).map_err(|error| unusable(&directory, &error))?;
        let (a, b) = (Actor::start(WorkerName::A)?, Actor::start(WorkerName::B)?);
        let round = Self {
            plan,
            fenced,
            directory,
            output,
            began: BootClock.now(),
            a,
            b,
            b_has_task: false,
            pause: Pause::NotYet,
            written: BTreeSet::new(),
            refused: 0,
        };
        output.begin(fenced, round.a.process.number(), round.b.process.number())?;
        Ok(round)
    }

    pub(super) async fn play(mut self) -> Result<Outcome, Failure> {
        let task = Task { renew_before: Some(PAUSED_ROW), ..self.task() };
        self.a.process.give(&task)?;
        while !(self.a.has_exited && self.b.has_exited) {
            let pause_ends = self.pause_ends();
            // It counts from the last step. This process may have been stopped itself (Ctrl-Z), so steps come first.
            let limit = BootClock.now() + self.plan.pause + 2 * self.plan.ttl + PATIENCE;
            let (name, step) = tokio::select! {
                biased;
                step = self.a.process.next(), if !self.a.has_exited => (WorkerName::A, step?),
                step = self.b.process.next(), if !self.b.has_exited => (WorkerName::B, step?),
                () = BootClock.sleep_until(pause_ends.unwrap_or(limit)), if pause_ends.is_some() => {
                    self.end_pause()?;
                    continue;
                }
                () = BootClock.sleep_until(limit) => return Err(too_slow()),
            };
            match step {
                Some(Step::Failed { exit, message }) => return Err(failed(name, exit, &message)),
                Some(step) => self.step(name, &step).await?,
                None => self.exited(name)?,
            }
        }
        self.outcome()
    }

    async fn step(&mut self, name: WorkerName, step: &Step) -> Result<(), Failure> {
        if let Step::Granted { token } = step {
            self.actor(name).token = Some(*token);
        }
        let mut what = Happening::Step(step);
        if let Step::Written { row, cents } = *step
            && !self.written.insert(row)
        {
            what = Happening::WrittenAgain { row, cents };
        }
        self.tell(name, what)?;
        match (name, step) {
            // B begins to wait before A writes the first row: A goes on when B has reported that it waits.
            (WorkerName::A, Step::Checked { row: FIRST_ROW }) => self.start_b()?,
            (WorkerName::B, Step::Waiting) if !self.a.is_done => self.a.process.go()?,
            (WorkerName::A, Step::Checked { row: PAUSED_ROW }) => self.begin_pause().await?,
            (name, Step::Checked { .. }) => self.actor(name).process.go()?,
            (name, Step::Refused { .. }) => {
                self.refused += 1;
                self.actor(name).is_done = true;
            }
            (name, Step::Read { .. }) => self.actor(name).has_read = true,
            (name, Step::Finished) => self.actor(name).is_done = true,
            (name, Step::Lost { .. }) => {
                let actor = self.actor(name);
                (actor.is_lost, actor.is_done) = (true, true);
                // A may lose its lease before the first row, on a busy machine.
                self.start_b()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives B its task, unless it has it already.
    fn start_b(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.b_has_task, true) {
            return Ok(());
        }
        let task = self.task();
        self.b.process.give(&task)
    }

    /// Stops A between its check and its write.
    async fn begin_pause(&mut self) -> Result<(), Failure> {
        self.output.note(&format!(
            "A has checked its lease for row {PAUSED_ROW}: it is held. It has not written the row yet."
        ))?;
        self.a.process.stop().await?;
        self.pause = Pause::Since(BootClock.now());
        self.tell(WorkerName::A, Happening::Stopped { row: PAUSED_ROW })?;
        // A reads it when it is continued.
        self.a.process.go()?;
        let ttl = duration::exact(self.plan.ttl);
        self.output.note(&if self.plan.outlasts_the_lease() {
            format!(
                "The witness shows B that process A still exists, so B waits until the ttl of {ttl} is over."
            )
        } else {
            format!("The pause ends before the ttl of {ttl} is over, so B keeps waiting.")
        })
    }

    /// The end of the pause. If it outlasts the lease, it lasts at least until B has finished.
    fn pause_ends(&self) -> Option<Instant> {
        let Pause::Since(since) = self.pause else { return None };
        let waits_for_b = self.plan.outlasts_the_lease() && !self.b.is_done;
        (!waits_for_b).then(|| since + self.plan.pause)
    }

    fn end_pause(&mut self) -> Result<(), Failure> {
        let Pause::Since(since) = self.pause else { return Ok(()) };
        let taken_over = self.b.has_read;
        let after = BootClock.now().since(since);
        self.pause = Pause::Over { taken_over };
        self.tell(WorkerName::A, Happening::Continued { row: PAUSED_ROW, after })?;
        if taken_over {
            self.output.note(&format!(
                "The next check of A will fail. But A has made its check for row {PAUSED_ROW}, so that row goes out."
            ))?;
        }
        self.a.process.resume()
    }

    fn exited(&mut self, name: WorkerName) -> Result<(), Failure> {
        let actor = self.actor(name);
        actor.has_exited = true;
        if actor.is_done { Ok(()) } else { Err(actor.process.ended_early()) }
    }

    fn tell(&self, worker: WorkerName, what: Happening<'_>) -> Result<(), Failure> {
        let actor = if worker == WorkerName::A { &self.a } else { &self.b };
        let event = DemoEvent {
            at: BootClock.now().since(self.began),
            fenced: self.fenced,
            worker,
            process: actor.process.number(),
            token: actor.token,
            what,
        };
        let stopped = matches!(self.pause, Pause::Since(_)).then_some(WorkerName::A);
        self.output.event(&event, stopped)
    }

    fn outcome(self) -> Result<Outcome, Failure> {
        let path = self.ledger();
        let rows = Ledger::rows(&path).map_err(|error| unusable(&path, &error))?;
        Ok(Outcome {
            plan: self.plan,
            fenced: self.fenced,
            tally: Tally::of(&rows),
            refused: self.refused,
            was_paused: self.pause != Pause::NotYet,
            taken_over: self.pause == Pause::Over { taken_over: true },
            a_lost: self.a.is_lost,
            b_lost: self.b.is_lost,
        })
    }

    fn task(&self) -> Task {
        Task {
            demo: rustix::process::getpid().as_raw_pid(),
            leases: self.directory.join("leases"),
            ledger: self.ledger(),
            fenced: self.fenced,
            ttl_ms: self.plan.ttl.as_millis() as u64,
            renew_before: None,
        }
    }

    fn ledger(&self) -> PathBuf {
        self.directory.join("ledger")
    }

    fn actor(&mut self, name: WorkerName) -> &mut Actor {
        if name == WorkerName::A { &mut self.a } else { &mut self.b }
    }
}

impl Actor {
    fn start(name: WorkerName) -> Result<Self, Failure> {
        let process = WorkerProcess::start(name)?;
        Ok(Self { process, token: None, has_read: false, is_lost: false, is_done: false, has_exited: false })
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unavailable(format!(
        "the demo cannot use {}: {error}. Name another directory in TMPDIR",
        path.display()
    ))
}

fn failed(name: WorkerName, exit: u8, message: &str) -> Failure {
    let advice = match exit {
        exit::REFUSED => ". The demo works in a directory below TMPDIR: name another one",
        _ => "",
    };
    Failure::new(exit, format!("process {name} of the demo failed: {message}{advice}"))
}

fn too_slow() -> Failure {
    Failure::unavailable("the processes of the demo made no progress: the machine is too busy. Try again")
}

const FIRST_ROW: u32 = 1;

/// The row before which A is stopped.
pub(super) const PAUSED_ROW: u32 = 3;

/// Longest time for a step, apart from the pause and the wait for the lease, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
