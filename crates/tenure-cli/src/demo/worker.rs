//! The process of a worker: `tenure demo-worker A`. `tenure demo` starts it.

use std::ffi::CString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal};
use tenure::clock::{BootClock, Clock};
use tenure::fence::{Fence, FenceError, FencingToken};
use tenure::store::File;
use tenure::{Coordinator, Error, ErrorKind, Holder, Lease};

use super::batch;
use super::ledger::{Ledger, LedgerRow};
use super::step::{Step, Task, WorkerName};
use crate::exit::{self, Failure};
use crate::store;

/// The first argument of a worker. Help, manual and completions do not show it.
pub(super) const COMMAND: &str = "demo-worker";

/// Runs a worker if this process was started as one.
pub(crate) fn worker_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != COMMAND {
        return None;
    }
    let name = match words.next().as_deref().and_then(|name| name.to_str()) {
        Some("A") => WorkerName::A,
        Some("B") => WorkerName::B,
        _ => return Some(not_alone()),
    };
    Some(work_as(name))
}

fn work_as(name: WorkerName) -> ExitCode {
    if let Ok(name) = CString::new(format!("tenure-demo-{name}")) {
        let _ = rustix::thread::set_name(&name);
    }
    // The demo blocks the signals that it reads, and a new process inherits that.
    let _ = SigSet::all().thread_unblock();
    let line = DemoLine;
    let Some(task) = line.task() else { return not_alone() };
    if !ends_with(task.demo) {
        return ExitCode::from(exit::UNAVAILABLE);
    }
    match store::block_on(async { Ok(Worker { name, task: &task, line: &line }.work().await?) }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            line.report(&Step::Failed { exit: failure.number(), message: failure.to_string() });
            failure.code()
        }
    }
}

fn not_alone() -> ExitCode {
    let failure = Failure::usage(format!("{COMMAND} is a part of tenure demo. See tenure demo --help"));
    failure.report(false);
    failure.code()
}

/// Makes the kernel kill this process when the demo dies, also while it is stopped. False if the demo is dead already.
fn ends_with(demo: i32) -> bool {
    let set = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    set.is_ok() && rustix::process::getppid() == Pid::from_raw(demo)
}

/// A worker with its task.
struct Worker<'a> {
    name: WorkerName,
    task: &'a Task,
    line: &'a DemoLine,
}

impl Worker<'_> {
    async fn work(&self) -> Result<(), Error> {
        let holder = Holder::new(&self.name.to_string())?;
        let store = File::open(&self.task.leases)?;
        let coordinator = Coordinator::builder().holder(holder).connect(store).await?;
        self.line.report(&Step::Waiting);
        let ttl = Duration::from_millis(self.task.ttl_ms);
        let lease = coordinator.lease(LEASE)?.ttl(ttl).acquire().await?;
        self.line.report(&Step::Granted { token: lease.token() });
        match self.settle_and_release(&lease).await {
            Err(error) if [ErrorKind::Lost, ErrorKind::Fenced].contains(&error.kind()) => {
                // After a refusal, the next check says the same.
                let lost = lease.check().err().unwrap_or(error);
                self.line.report(&Step::Lost { message: lost.to_string() });
                Ok(())
            }
            settled => settled,
        }
    }

    async fn settle_and_release(&self, lease: &Lease) -> Result<(), Error> {
        self.settle(lease).await?;
        self.line.report(&Step::Finished);
        lease.release().await?;
        self.line.report(&Step::Released);
        Ok(())
    }

    /// Writes the rest of the batch, until the lease is lost or the ledger refuses a row.
    async fn settle(&self, lease: &Lease) -> Result<(), Error> {
        let path = &self.task.ledger;
        let ledger = if self.task.fenced { Ledger::fenced(path) } else { Ledger::unfenced(path) };
        if self.task.fenced {
            // Before the ledger is read: a row of the former holder that arrived after that would not be seen.
            lease.fenced(&ledger).seal().await?;
            self.line.report(&Step::Sealed);
        }
        let there = read(path)?;
        let is_there = |row: u32| there.iter().any(|found| found.row == row);
        let mut rest = batch::batch().filter(|payment| !is_there(payment.row)).peekable();
        self.line.report(&Step::Read { next: rest.peek().map(|payment| payment.row) });
        for payment in rest {
            BootClock.sleep_until(BootClock.now() + PACE).await;
            if self.task.renew_before == Some(payment.row) {
                // The whole ttl is left at the pause, and the keeper is idle: it is not stopped in the middle of a
                // write, with the store's lock.
                lease.renew().await?;
            }
            let batch::Payment { row, cents } = payment;
            let entry = LedgerRow { row, cents, by: self.name, token: lease.token() };
            // The check of the lease is in `write`. The worker is stopped after it, and before the ledger is written.
            let ledger = Announced { ledger: &ledger, line: self.line };
            let written = lease.fenced(&ledger).write(&entry).await;
            written.inspect_err(|error| self.report_refusal(row, error))?;
            self.line.report(&Step::Written { row, cents });
        }
        Ok(())
    }

    /// Reports that the ledger refused the row, if it did.
    fn report_refusal(&self, row: u32, error: &Error) {
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
        if let Some(FenceError::Stale { highest, .. }) = cause {
            self.line.report(&Step::Refused { row, highest: *highest, message: error.to_string() });
        }
    }
}

fn read(path: &Path) -> Result<Vec<LedgerRow>, Error> {
    Ledger::rows(path).map_err(|error| {
        let sentence = format!("the ledger {} could not be read: {error}", path.display());
        Error::new(ErrorKind::Unavailable, sentence).because(error)
    })
}

/// A ledger whose writes are announced to the demo: they go out after its `go`.
struct Announced<'a> {
    ledger: &'a Ledger,
    line: &'a DemoLine,
}

impl Fence for Announced<'_> {
    type Write<'w>
        = &'w LedgerRow
    where
        Self: 'w;
    type Written = ();

    async fn write<'w>(&'w self, token: &'w FencingToken, row: &'w LedgerRow) -> Result<(), FenceError> {
        self.line.report(&Step::Checked { row: row.row });
        // It blocks this thread alone. The keeper has its own.
        self.line.wait_for_go();
        self.ledger.write(token, row).await
    }
}

/// The connection to the demo: standard input and output.
struct DemoLine;

impl DemoLine {
    fn task(&self) -> Option<Task> {
        serde_json::from_str(&self.next()?).ok()
    }

    fn wait_for_go(&self) {
        if self.next().is_none() {
            self.demo_is_gone();
        }
    }

    fn report(&self, step: &Step) {
        let mut line = serde_json::to_vec(step).expect("a step is text and numbers");
        line.push(b'\n');
        let mut out = io::stdout().lock();
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            self.demo_is_gone();
        }
    }

    fn next(&self) -> Option<String> {
        let mut line = String::new();
        io::stdin().read_line(&mut line).ok().filter(|&length| length > 0).map(|_| line)
    }

    /// Ends this process: there is no demo to work for.
    fn demo_is_gone(&self) -> ! {
        std::process::exit(exit::UNAVAILABLE.into())
    }
}

/// The lease that both workers want.
pub(super) const LEASE: &str = "settlement/nightly";

/// Time for one payment, so that a reader can follow.
const PACE: Duration = Duration::from_millis(200);
