//! Connections: opened with one handshake, shared by all calls of a runtime, and replaced when they break.

mod dial;
mod first_success;
mod handshake;
mod open_attempt;
mod pool;
mod sentinel;
mod server_info;
mod task;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value, cmd};
use tenure_store::{Quarantine, RunMarks};
use tokio::task::JoinHandle;

pub(crate) use dial::{Dialer, Wire};
pub(crate) use pool::Pool;
pub(crate) use server_info::ServerInfo;

use crate::classify;
use crate::open::{Address, ReplicaConfirmation};
use crate::scripts::Operation;

/// An open connection to one run of one server. A restart of the server breaks it, so the run holds for all its calls.
pub(crate) struct Connection {
    client: MultiplexedConnection,
    driver: JoinHandle<()>,
    pub(crate) address: Address,
    pub(crate) server: ServerInfo,
    /// True if a call was dropped before its answer, or an answer shows that the server has changed.
    suspect: AtomicBool,
    quarantine: Mutex<Quarantine>,
    /// Id of the restart record when this connection began to wait: a deletion of all data deletes it. `None` if there is
    /// no quarantine, and empty if there was no record.
    pub(crate) restart_id: Option<String>,
    /// Time of the latest read of the marks, on the machine's clock.
    marks_read_at: Mutex<Duration>,
}

impl Connection {
    /// True if the next call may use it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.driver.is_finished() && !self.suspect.load(Ordering::Relaxed)
    }

    /// Makes the next call open another connection.
    pub(crate) fn suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }

    pub(crate) fn quarantine(&self) -> MutexGuard<'_, Quarantine> {
        self.quarantine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a call that waits may read the marks at this time. All calls of the connection share what it finds.
    pub(crate) fn may_read_marks(&self, now: Duration) -> bool {
        let mut read_at = self.marks_read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may = now >= *read_at + MARKS_INTERVAL;
        if may {
            *read_at = now;
        }
        may
    }

    /// Notes that the restart record names this run as cleared.
    pub(crate) fn clear(&self) {
        let run = self.server.run.as_str();
        self.quarantine().note(&RunMarks::of_run(run).with_cleared(run));
    }

    /// Sends one command, and waits for its answer. A server's error is a value here.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let unanswered = Unanswered(self);
        let answer = self.client.clone().send_packed_command(command).await?;
        unanswered.answered();
        self.inspect(&answer);
        Ok(answer)
    }

    /// Sends several commands at once, and waits for all answers.
    pub(crate) async fn send_all(&self, commands: &redis::Pipeline) -> Result<Vec<Value>, RedisError> {
        let unanswered = Unanswered(self);
        let answers = self.client.clone().send_packed_commands(commands, 0, commands.len()).await?;
        unanswered.answered();
        answers.iter().for_each(|answer| self.inspect(answer));
        Ok(answers)
    }

    /// Makes the next call open another connection if this answer shows that the server has changed.
    fn inspect(&self, answer: &Value) {
        if let Value::ServerError(error) = answer
            && classify::outdates_the_connection(error)
        {
            self.suspect();
        }
    }

    /// Runs a script. If the server does not have it, the server has done nothing, and a second command carries the
    /// text.
    pub(crate) async fn run(
        &self,
        operation: Operation,
        keys: &[impl AsRef<[u8]>],
        arguments: &[&[u8]],
    ) -> Result<Value, RedisError> {
        match self.send(&operation.by_hash(keys, arguments)).await? {
            Value::ServerError(error) if error.code() == "NOSCRIPT" => {
                self.send(&operation.by_text(keys, arguments)).await
            }
            answer => Ok(answer),
        }
    }

    /// Sends a command to a node of a cluster that another node has named for this call.
    pub(crate) async fn send_redirected(&self, command: Cmd) -> Result<Value, RedisError> {
        let mut commands = redis::pipe();
        commands.add_command(cmd("ASKING")).add_command(command);
        Ok(self.send_all(&commands).await?.pop().unwrap_or(Value::Nil))
    }

    /// Waits until the replicas have all writes that were sent on this connection so far. Returns the number of
    /// replicas that have.
    pub(crate) async fn await_replicas(
        &self,
        confirmation: ReplicaConfirmation,
    ) -> Result<Value, RedisError> {
        match self.send(&wait_command(confirmation)).await? {
            Value::Array(mut numbers) => Ok(numbers.pop().unwrap_or(Value::Nil)),
            answer => Ok(answer),
        }
    }
}

/// The command that waits for replicas.
fn wait_command(confirmation: ReplicaConfirmation) -> Cmd {
    let limit = WAIT_MAX.as_millis() as u64;
    if confirmation.on_disk {
        cmd("WAITAOF").arg(0).arg(confirmation.replicas).arg(limit).clone()
    } else {
        cmd("WAIT").arg(confirmation.replicas).arg(limit).clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // No call uses it any more.
        self.driver.abort();
    }
}

/// A call whose answer has not come. If it is dropped, its connection is suspect: the server, or the route to it, may
/// have stopped answering.
struct Unanswered<'a>(&'a Connection);

impl Unanswered<'_> {
    fn answered(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.0.suspect();
    }
}

/// Longest wait for an answer of a server. A keeper waits much less.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Shortest time between two reads of the marks.
const MARKS_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait for replicas. A multiplexed connection answers no other call during that time.
const WAIT_MAX: Duration = Duration::from_secs(1);
