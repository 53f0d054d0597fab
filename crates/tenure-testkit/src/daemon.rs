//! A server process with its own ports and directory.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::home::Home;
use crate::port::Port;
use crate::process::Process;
use crate::program::Program;
use crate::server::StartError;

/// A server process that can be stopped and started again, with its ports and its directory. It is killed, and the
/// directory is deleted, when this is dropped or when this process ends in any way.
#[derive(Debug)]
pub(crate) struct Daemon {
    program: Program,
    ports: Vec<Port>,
    // Dropped before the home: no process may write to a directory while it is deleted.
    process: Mutex<Option<Process>>,
    _backing: Vec<Process>,
    home: Home,
}

impl Daemon {
    /// Reserves the ports and creates the directory. `backing` starts the processes that the server needs. They run
    /// until this is dropped, also while the server is stopped.
    pub(crate) fn new(
        program: Program,
        ports: usize,
        backing: impl FnOnce(&Home, &[Port]) -> std::io::Result<Vec<Process>>,
    ) -> Result<Self, StartError> {
        if !program.path.is_file() {
            return Err(StartError::missing(&program));
        }
        let failed = |error: std::io::Error| StartError::failed(&program, error.to_string(), String::new());
        let home = Home::new(program.name).map_err(failed)?;
        let ports: Vec<_> = (0..ports).map(|_| Port::reserve()).collect();
        let backing = backing(&home, &ports).map_err(failed)?;
        Ok(Self { program, ports, process: Mutex::new(None), _backing: backing, home })
    }

    /// The same, with a data directory of at most this size, if one is given.
    pub(crate) fn with_disk(program: Program, ports: usize, disk: Option<u64>) -> Result<Self, StartError> {
        let mut daemon = Self::new(program, ports, |_, _| Ok(Vec::new()))?;
        if let Some(bytes) = disk {
            if !rustix::process::geteuid().is_root() {
                return Err(StartError::unsupported(
                    &daemon.program,
                    "only root can mount a small disk".to_owned(),
                ));
            }
            let mounted = daemon.home.limit_data(bytes);
            mounted.map_err(|error| StartError::unsupported(&daemon.program, error.to_string()))?;
        }
        Ok(daemon)
    }

    /// Calls `start` again, which takes other ports, if a process that ignores the reservations has taken a port.
    pub(crate) fn on_free_ports<T>(start: impl Fn() -> Result<T, StartError>) -> Result<T, StartError> {
        for _ in 1..TRIES {
            match start() {
                Err(StartError::Failed { output, .. }) if output.to_ascii_lowercase().contains(TAKEN) => {}
                outcome => return outcome,
            }
        }
        start()
    }

    /// Starts the process, and returns when `is_ready` is true of its process id.
    pub(crate) fn run(&self, command: &Command, is_ready: impl Fn(i32) -> bool) -> Result<(), StartError> {
        let process = Process::start(command, &self.home).map_err(|error| self.failed(error.to_string()))?;
        let started = Instant::now();
        while !is_ready(process.number()) {
            if process.has_ended() {
                return Err(self.failed("it ended by itself"));
            }
            if started.elapsed() > PATIENCE {
                return Err(self.failed(format!("it was not ready after {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        *self.process() = Some(process);
        Ok(())
    }

    /// Sends a signal that makes it stop, and waits until it has exited.
    pub(crate) fn stop(&self, signal: Signal) {
        let process = self.process().take();
        if let Some(process) = process {
            process.stop(signal);
        }
    }

    /// Stops it and its children with SIGSTOP.
    pub(crate) fn pause(&self) {
        if let Some(process) = self.process().as_ref() {
            process.pause();
        }
    }

    /// Lets it and its children continue.
    pub(crate) fn resume(&self) {
        if let Some(process) = self.process().as_ref() {
            process.resume();
        }
    }

    /// Kills it and its children at once.
    pub(crate) fn kill(&self) {
        let process = self.process().take();
        if let Some(process) = process {
            process.kill();
        }
    }

    /// Its process id; `None` while it is stopped.
    pub(crate) fn number(&self) -> Option<i32> {
        self.process().as_ref().map(Process::number)
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The address that serves the clients.
    pub(crate) fn address(&self) -> SocketAddr {
        self.ports[0].address()
    }

    /// The end of its output since it was first started.
    pub(crate) fn output(&self) -> String {
        let said = std::fs::read(self.home.log()).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(OUTPUT)..]).into_owned()
    }

    /// The error for a server that does not serve for this reason.
    pub(crate) fn failed(&self, why: impl Into<String>) -> StartError {
        StartError::failed(&self.program, why.into(), self.output())
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Longest time until a server serves, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Number of attempts, each with other ports.
const TRIES: usize = 5;

/// Output of a server if its port is taken.
const TAKEN: &str = "address already in use";

/// Number of bytes of its output to show.
const OUTPUT: usize = 4000;
