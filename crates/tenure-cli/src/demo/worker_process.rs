use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tenure::clock::{BootClock, Clock};
use tokio::io::unix::AsyncFd;

use super::step::{Step, Task, WorkerName};
use super::worker;
use crate::exit::Failure;
use crate::ready::when_readable;

/// A running worker, seen from the demo. It is killed on drop.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    name: WorkerName,
    child: Child,
    to: ChildStdin,
    from: AsyncFd<ChildStdout>,
    /// Output that is not a complete line yet.
    read: Vec<u8>,
}

impl WorkerProcess {
    /// Starts this program as a worker. It waits for its task.
    pub(super) fn start(name: WorkerName) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            Failure::unavailable(format!(
                "the demo could not start process {name}: {error}. Check the limits on processes and open files"
            ))
        };
        // The same file, even if another version has replaced it since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("tenure").args([worker::COMMAND, &name.to_string()]);
        // In a group of its own. Ctrl-Z and fg reach the demo alone: SIGCONT must not end the pause.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(cannot)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(cannot(io::ErrorKind::BrokenPipe.into()));
        };
        let from = rustix::io::ioctl_fionbio(&from, true)
            .map_err(io::Error::from)
            .and_then(|()| when_readable(from));
        match from {
            Ok(from) => Ok(Self { name, child, to, from, read: Vec::new() }),
            Err(error) => {
                end(&mut child);
                Err(cannot(error))
            }
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Gives the worker its task.
    pub(super) fn give(&mut self, task: &Task) -> Result<(), Failure> {
        let line = serde_json::to_string(task).map_err(|error| self.failure(&error.to_string()))?;
        self.send(&line)
    }

    /// Lets the worker write the row that it announced. A stopped worker reads this when it is continued.
    pub(super) fn go(&mut self) -> Result<(), Failure> {
        self.send("go")
    }

    fn send(&mut self, line: &str) -> Result<(), Failure> {
        let sent = self.to.write_all(format!("{line}\n").as_bytes());
        sent.map_err(|error| self.failure(&format!("it does not read: {error}")))
    }

    /// The next step of the worker; `None` once it has exited. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Step>, Failure> {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let step = serde_json::from_slice(&line);
                return step
                    .map(Some)
                    .map_err(|error| self.failure(&format!("it reports nonsense: {error}")));
            }
            let ready = self.from.readable().await;
            let mut ready = ready.map_err(|error| self.failure(&error.to_string()))?;
            let mut bytes = [0; 4096];
            match rustix::io::read(self.from.get_ref(), &mut bytes) {
                Ok(0) => return Ok(None),
                Ok(length) => self.read.extend_from_slice(&bytes[..length]),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failure(&error.to_string())),
            }
        }
    }

    /// Stops the whole process, with all its threads, and waits until the kernel reports that it is stopped.
    pub(super) async fn stop(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)?;
        // It is not reaped here.
        let options =
            WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let begun = BootClock.now();
        while BootClock.now().since(begun) < STOPS_WITHIN {
            match waitid(WaitId::Pid(self.pid()), options) {
                Ok(Some(status)) if status.stopped() => return Ok(()),
                Ok(Some(_)) => return Err(self.failure("it ended before it was stopped")),
                Ok(None) | Err(_) => {}
            }
            BootClock.sleep_until(BootClock.now() + Duration::from_millis(1)).await;
        }
        Err(self.failure("it does not stop"))
    }

    /// Continues the stopped process.
    pub(super) fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        // It is not reaped before this value is dropped, so the number is its own.
        kill_process(self.pid(), signal).map_err(|error| self.failure(&error.to_string()))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The failure of the demo after this worker has ended too early.
    pub(super) fn ended_early(&mut self) -> Failure {
        // It has closed its output, so it is about to exit.
        let status = self.child.wait().map(|status| status.to_string());
        self.failure(&format!("it ended early, by {}", status.unwrap_or_else(|error| error.to_string())))
    }

    /// The failure of the demo after this worker has failed.
    pub(super) fn failure(&self, why: &str) -> Failure {
        let (name, number) = (self.name, self.number());
        Failure::unavailable(format!(
            "process {name} of the demo ({number}) failed: {why}. Start the demo again"
        ))
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Kills and reaps a worker. A stopped process dies of KILL, too.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

const STOPS_WITHIN: Duration = Duration::from_secs(10);
