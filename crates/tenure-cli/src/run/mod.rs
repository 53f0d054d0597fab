//! `tenure run`: a program runs only while its lease is held, and its whole process tree is dead before the lease is over.
//!
//! Three processes: the *supervisor* holds the lease; the *watchdog* ends the tree when the supervisor cannot; the *stub*
//! waits at a gate, and becomes the user's program once the lease is granted. The supervisor is the parent of the
//! watchdog, and the watchdog that of the stub.

mod cgroup;
mod fork;
mod go;
mod link;
mod order;
mod ready;
mod report;
mod signals;
mod stub;
mod supervisor;
mod tree;
mod voice;
mod watchdog;
mod why;

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::process::{Pid, PidfdFlags, WaitOptions, kill_process, pidfd_open};
use serde_json::{Value, json};
use tenure::{Coordinator, Holder, Key, Kind, Lease, Timing};

use crate::args::{Args, Run};
use crate::exit::{self, Failure};
use crate::{duration, output, store};
use fork::{Side, fork};
use go::Go;
use link::{Link, Listening, Received};
use ready::when_readable;
use report::Report;
use signals::{Blocked, Signals};
use supervisor::{Charges, Ending, Supervisor};
use tree::Tree;
use voice::{Event, Voice};
use watchdog::Terms;

/// Runs the command while the lease is held.
pub(crate) fn run(args: &Args, run: &Run) -> Result<ExitCode, Failure> {
    let key: Key = Key::parse(&run.name)?;
    let holder = run.holder.as_deref().map(Holder::new).transpose().map_err(tenure::Error::from)?;
    let timing = timing(run)?;
    if !Tree::can_be_seen() {
        return Err(Failure::new(
            exit::UNSAFE,
            "/proc does not show this process, so nothing could find and end what the command starts: mount the /proc of \
             this pid namespace",
        ));
    }
    let cannot = |error: io::Error| {
        Failure::new(
            exit::UNAVAILABLE,
            format!(
                "the command could not be prepared: {error}. Look at the limits on processes and open files"
            ),
        )
    };
    // A supervisor that fails must not unwind, which would let go of the lease while the command runs on: it dies, and
    // the watchdog ends the command.
    let panicked = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        panicked(info);
        std::process::abort();
    }));
    // Both before the first thread: a fork copies only one, and threads inherit what is blocked.
    let household = Household::start(timing, &run.command).map_err(cannot)?;
    let blocked = Blocked::now().map_err(cannot)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let watchdog = household.watchdog;
    let ended = runtime.block_on(async {
        let signals = blocked.take().map_err(cannot)?;
        let mut builder = Coordinator::builder();
        if let Some(holder) = holder {
            builder = builder.holder(holder);
        }
        let store::Opened { store, url } = store::open(args)?;
        let coordinator = builder.connect(store).await?;
        let voice = Voice::new(run.quiet, run.json);
        let running = Running { run, key, timing, voice, coordinator, url, signals };
        running.supervise(household).await
    });
    // Its link is gone by now, and so is the tree.
    let _ = rustix::process::waitpid(Some(watchdog), WaitOptions::empty());
    ended
}

/// The durations that are safe for a program which needs time to end, and for a watchdog that may wake up late.
fn timing(run: &Run) -> Result<Timing, Failure> {
    let grace = run.kill_grace.unwrap_or((run.ttl / 3).min(GRACE));
    let margin = (run.ttl / 50).max(MARGIN);
    let built = Timing::builder(run.ttl).grace(grace).margin(margin).build();
    built.map_err(|error| Failure::new(exit::UNSAFE, error.to_string()))
}

/// The watchdog and the stub, before anything is held.
struct Household {
    watchdog: Pid,
    cgroup: cgroup::Name,
    control: Link,
    gate: Link,
}

impl Household {
    fn start(timing: Timing, command: &[OsString]) -> io::Result<Self> {
        let cgroup = cgroup::Name::random()?;
        let (control, watchdogs) = Link::pair()?;
        let (gate, stubs) = Link::pair()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        match fork()? {
            Side::Child => {
                // These ends live in the supervisor alone, or their end would never be seen.
                drop((control, gate));
                let terms = Terms { grace: timing.grace(), margin: timing.margin(), cgroup };
                watchdog::run(terms, watchdogs, stubs, command)
            }
            Side::Parent { child } => Ok(Self { watchdog: child, cgroup, control, gate }),
        }
    }
}

/// One `tenure run`, connected.
struct Running<'a> {
    run: &'a Run,
    key: Key,
    timing: Timing,
    voice: Voice,
    coordinator: Coordinator,
    /// Names the store for the child.
    url: String,
    signals: Signals,
}

impl Running<'_> {
    async fn supervise(self, household: Household) -> Result<ExitCode, Failure> {
        let unwatched =
            || Failure::new(exit::UNAVAILABLE, "the watchdog could not be started, or was killed: try again");
        let control = Listening::to(household.control).map_err(|_| unwatched())?;
        let stub = Cell::new(None);
        let lease = tokio::select! {
            lease = self.acquire() => lease?,
            signal = self.ended_by() => return Ok(self.give_up(signal).await),
            () = until_gone(&control, &stub) => return Err(unwatched()),
        };
        self.voice.say(&Event {
            name: "granted",
            fields: json!({
                "key": lease.key().as_str(),
                "holder": &**lease.holder().id(),
                "token": lease.token().get(),
                "store": self.coordinator.store_name(),
                "ttl_ms": self.timing.ttl().as_millis(),
            }),
            sentence: format!("lease {} is held with token {}", lease.key(), lease.token()),
            nice_to_know: true,
        });
        if stub.get().is_none()
            && let Some(Report::Ready { stub: number }) = Report::next(&control).await
        {
            stub.set(Pid::from_raw(number));
        }
        // The stub waits at its gate, so the number is its own.
        let child = stub.get().ok_or_else(unwatched)?;
        let descriptor = pidfd_open(child, PidfdFlags::empty()).map_err(|_| unwatched())?;
        let child_fd = when_readable(descriptor).map_err(|_| unwatched())?;
        let charges =
            Charges { watchdog: household.watchdog, cgroup: household.cgroup, control, child, child_fd };
        let acting = lease.acting()?;
        let mut supervisor = Supervisor::new(self.voice, &lease, acting, self.timing, charges);
        // Supervisor, watchdog and child each hold the witness: whoever is left of them counts.
        let witness = lease.witness()?;
        if !supervisor.arm(witness.as_ref()).await {
            // Nothing was started. A watchdog that does not answer is most likely stopped, and would stay for ever.
            let _ = kill_process(household.watchdog, rustix::process::Signal::KILL);
            drop(supervisor);
            let _ = self.coordinator.shutdown().await;
            return Err(unwatched());
        }
        let before = supervisor.too_late_at();
        let gate = household.gate;
        let go = Go { before, environment: self.environment(&lease) };
        let opened = gate.send(&go.to_bytes(), witness.as_ref().map(AsFd::as_fd)).is_ok();
        drop(witness);
        self.voice.say(&Event {
            name: "started",
            fields: json!({ "pid": child.as_raw_nonzero() }),
            sentence: format!("{} runs as process {}", self.run.command[0].display(), child.as_raw_nonzero()),
            nice_to_know: true,
        });
        let (ending, acting) = supervisor.watch(&self.signals).await;
        self.finish(lease, ending, acting, opened.then_some(gate)).await
    }

    /// What the child finds in its environment.
    fn environment(&self, lease: &Lease) -> Vec<(String, String)> {
        let variables = [
            ("TENURE_NAME", lease.key().to_string()),
            ("TENURE_TOKEN", lease.token().to_string()),
            ("TENURE_HOLDER", lease.holder().id().to_string()),
            ("TENURE_STORE", self.url.clone()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).into()
    }

    async fn acquire(&self) -> Result<Lease, Failure> {
        let mut request = self.coordinator.lease(self.key.as_str())?.timing(self.timing);
        if self.run.strict {
            request = request.strict();
        }
        let mut granted = request.clone().try_acquire().await;
        let waits = !self.run.no_wait && self.run.wait != Some(Duration::ZERO);
        if waits && granted.as_ref().is_err_and(|error| error.kind() == Kind::Held) {
            self.say_waiting().await;
            if let Some(limit) = self.run.wait {
                request = request.wait(limit);
            }
            granted = request.acquire().await;
        }
        match granted {
            Err(error) if error.kind() == Kind::Held => {
                let by = self.held_by().await.map_or(error.to_string(), |(_, sentence)| {
                    format!("{sentence}: try again later, or wait for it with --wait DURATION")
                });
                Err(Failure::new(self.run.conflict_exit_code, by))
            }
            granted => Ok(granted?),
        }
    }

    async fn say_waiting(&self) {
        let Some((fields, sentence)) = self.held_by().await else { return };
        let limit = match self.run.wait {
            Some(limit) => format!("for {} at the longest", duration::exact(limit)),
            None => "for as long as it takes".to_owned(),
        };
        self.voice.say(&Event {
            name: "waiting",
            fields,
            sentence: format!("waiting {limit}: {sentence}"),
            nice_to_know: true,
        });
    }

    /// Who holds it, for programs and for people; `None` if nobody does any more, or nobody can tell.
    async fn held_by(&self) -> Option<(Value, String)> {
        let seen = self.coordinator.observe(self.key.as_str()).await.ok()?;
        let (left, record) = (seen.standing.remaining()?, seen.record?);
        let holder = record.holder.as_ref().map_or("somebody", |holder| holder.id());
        let fields = json!({
            "key": self.key.as_str(),
            "holder": holder,
            "token": record.token.get(),
            "left_ms": duration::millis_up(left.at_most),
        });
        let sentence = format!(
            "lease {} on {} is held by {} (token {}), at most {} left",
            self.key,
            self.url,
            output::plain(holder),
            record.token,
            duration::at_most(left.at_most)
        );
        Some((fields, sentence))
    }

    /// The first signal that ends a program which does not handle it.
    async fn ended_by(&self) -> Signal {
        loop {
            match self.signals.next().await.signal {
                Signal::SIGCHLD | Signal::SIGCONT | Signal::SIGWINCH => {}
                signal => return signal,
            }
        }
    }

    /// Somebody sent a signal while we waited: what may have been granted meanwhile is let go.
    async fn give_up(&self, signal: Signal) -> ExitCode {
        let _ = self.coordinator.shutdown().await;
        ExitCode::from(128 + signal as u8)
    }

    async fn finish(
        &self,
        lease: Lease,
        ending: Ending,
        acting: Option<tenure::Acting>,
        gate: Option<Link>,
    ) -> Result<ExitCode, Failure> {
        let what = format!(
            "lease {} of {} (token {}) on {}",
            lease.key(),
            lease.holder(),
            lease.token(),
            self.coordinator.store_name()
        );
        if !ending.left.is_empty() {
            let numbers: Vec<_> = ending.left.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
            let sentence = format!(
                "{what} is not released but lapses within {}: process {} runs as another user and could not be ended",
                self.timing.ttl(),
                numbers.join(", ")
            );
            output::say(&format!("tenure: {sentence}"));
            // Nothing may be vacated on the way out.
            std::process::exit(code(ending.status).into());
        }
        drop(acting);
        let vacated = self.coordinator.shutdown().await;
        if let Err(error) = vacated {
            output::say(&format!("tenure: {error}"));
        }
        if let Some(why) = ending.why {
            return Err(Failure::new(
                exit::LOST,
                format!("the command was stopped, and {what} is over: {}", why.sentence()),
            ));
        }
        if let Some(Received::Message(number, _)) = gate.map(|gate| gate.receive()) {
            let number = number.try_into().map(i32::from_ne_bytes).unwrap_or_default();
            let program = self.run.command[0].display();
            if number == 0 {
                return Err(Failure::new(
                    exit::LOST,
                    format!("{what} was held too late to start {program}: try again"),
                ));
            }
            let error = io::Error::from_raw_os_error(number);
            return Err(Failure::new(
                code(ending.status),
                format!("{program} could not be started: {error}"),
            ));
        }
        Ok(ExitCode::from(code(ending.status)))
    }
}

/// Waits until the watchdog is gone, and notes the stub's number when it comes.
async fn until_gone(control: &Listening, stub: &Cell<Option<Pid>>) {
    while let Some(report) = Report::next(control).await {
        if let Report::Ready { stub: number } = report {
            stub.set(Pid::from_raw(number));
        }
    }
}

/// The child's own code, or 128 and the number of the signal that ended it.
fn code(status: Option<ExitStatus>) -> u8 {
    let Some(status) = status else { return exit::LOST };
    let number = status.code().or(status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(exit::LOST)
}

/// The longest grace unless one is given.
const GRACE: Duration = Duration::from_secs(5);

/// A watchdog woke up 87 ms late on two cores with 64 busy loops.
const MARGIN: Duration = Duration::from_millis(150);
