//! A process that never outlives the test, however the test ends.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;
use crate::process_table::{children_of, is_alive, is_running, state_of};
use crate::wait::wait_for;

/// A server under a guard: a small shell that reads from a pipe and kills the server when the pipe closes. The kernel
/// closes the pipe even if the test panics, exits or is killed. A parent-death signal would not do: it comes when the
/// *thread* ends that started the server, and one server serves many tests.
#[derive(Debug)]
pub(crate) struct Process {
    guard: Child,
    /// The guard reaps the server only at the end, so the pid is not reused, even after the server has exited.
    server: Pid,
    /// True if its directory stays when it is dropped.
    keeps_data: bool,
}

impl Process {
    /// Starts the server, and appends its output to the log of its home.
    pub(crate) fn start(command: &Command, home: &Home) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", GUARD, "guard"]).arg(home.log()).arg(home.path());
        shell.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            shell.env(name, value.expect("nothing is removed from the environment"));
        }
        // Its own process group: an interrupt from the terminal is for the test, and the guard waits for the end of the
        // test.
        shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guard = shell.spawn()?;
        let mut line = String::new();
        BufReader::new(guard.stdout.take().expect("it is piped")).read_line(&mut line)?;
        let number = line.trim().parse().ok().and_then(Pid::from_raw);
        let server = number.ok_or_else(|| io::Error::other("the guard of the server did not start it"))?;
        Ok(Self { guard, server, keeps_data: false })
    }

    /// Process id of the server.
    pub(crate) fn number(&self) -> i32 {
        self.server.as_raw_nonzero().get()
    }

    /// True if the server has exited by itself.
    pub(crate) fn has_ended(&self) -> bool {
        state_of(self.number()).is_none_or(|state| state == 'Z')
    }

    /// Sends a signal that makes the server stop, waits some time, then kills it. Its data stays.
    pub(crate) fn stop(self, signal: Signal) {
        self.resume();
        let _ = kill_process(self.server, signal);
        let _ = wait_for(PATIENCE, Duration::from_millis(10), || self.has_ended().then_some(()));
        self.kill();
    }

    /// Stops the server and its children with SIGSTOP. They keep their connections, and the kernel accepts more.
    pub(crate) fn pause(&self) {
        self.pause_alone();
        self.signal_children(Signal::STOP);
    }

    /// Lets the server and its children continue.
    pub(crate) fn resume(&self) {
        self.signal_children(Signal::CONT);
        let _ = kill_process(self.server, Signal::CONT);
    }

    /// Kills the server and its children at once, as a power cut would. Its data stays.
    pub(crate) fn kill(mut self) {
        self.keeps_data = true;
        // Dropping kills it, and waits until it and its children have exited.
    }

    /// Stops the server without its children. A stopped server starts no more of them.
    fn pause_alone(&self) {
        let _ = kill_process(self.server, Signal::STOP);
        let stopped = || (!is_running(self.number())).then_some(());
        let _ = wait_for(PATIENCE, Duration::from_millis(1), stopped);
    }

    fn signal_children(&self, signal: Signal) {
        for child in children_of(self.number()).into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(child, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // While the server exists: its children have another parent afterwards.
        self.pause_alone();
        let children = children_of(self.number());
        let mut guard = self.guard.stdin.take().expect("it is piped");
        if self.keeps_data {
            let _ = guard.write_all(b"keep\n");
        }
        drop(guard);
        let _ = self.guard.wait();
        // Not even a dying child may still use a directory that is deleted next, or memory that the next run checks.
        let gone = || children.iter().all(|&child| !is_alive(child)).then_some(());
        let _ = wait_for(PATIENCE, Duration::from_millis(2), gone);
    }
}

/// Longest time for a server to exit after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments: the log, the directory to delete at the end unless the guard reads `keep`, and the command.
const GUARD: &str = r#"
log=$1 home=$2
shift 2
"$@" </dev/null >>"$log" 2>&1 &
server=$!
# The kernel sends SIGHUP to this process group if the test exits while the server is stopped.
trap '' HUP
echo "$server"
exec >/dev/null
read -r word
# A stopped server starts no more children.
kill -STOP "$server"
kill -KILL $(cat "/proc/$server/task/$server/children") "$server"
wait "$server"
[ "$word" = keep ] || { umount -l "$home/data" 2>/dev/null; rm -rf "$home"; }
"#;
