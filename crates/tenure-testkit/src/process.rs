//! A process that never outlives the test, however the test ends.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;
use crate::process_table::state_of;
use crate::wait::wait_for;

/// A server under a guard: a small shell that reads from a pipe and kills the server when the pipe closes. The kernel
/// closes the pipe even if the test panics, exits or is killed. A parent-death signal would not do: it comes when the
/// *thread* ends that started the server, and one server serves many tests.
#[derive(Debug)]
pub(crate) struct Process {
    guard: Child,
    /// The guard reaps the server only at the end, so the pid is not reused, even after the server has exited.
    server: Pid,
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
        Ok(Self { guard, server })
    }

    /// Process id of the server.
    pub(crate) fn number(&self) -> i32 {
        self.server.as_raw_nonzero().get()
    }

    /// True if the server has exited by itself.
    pub(crate) fn has_ended(&self) -> bool {
        state_of(self.number()).is_none_or(|state| state == 'Z')
    }

    /// Sends SIGTERM, waits some time, then kills the server. Its data stays.
    pub(crate) fn stop(self) {
        let _ = kill_process(self.server, Signal::TERM);
        let _ = wait_for(PATIENCE, Duration::from_millis(10), || self.has_ended().then_some(()));
        self.kill();
    }

    /// Kills the server at once, as a power cut would. Its data stays.
    pub(crate) fn kill(mut self) {
        let _ = self.guard.stdin.as_mut().expect("it is piped").write_all(b"keep\n");
        // Dropping waits until both have exited.
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
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
echo "$server"
exec >/dev/null
read -r word
kill -KILL "$server"
wait "$server"
[ "$word" = keep ] || rm -rf "$home"
"#;
