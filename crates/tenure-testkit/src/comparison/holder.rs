//! A holder in its own process, so that it can be killed and paused.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{Comparison, LockKind, TTL};

/// The variable that makes this program a holder. Its value is the kind of the lock, its name, and the URL of the server,
/// in lines.
pub(super) const VARIABLE: &str = "TENURE_COMPARED_HOLDER";

/// A holder that renews its lock each third of the ttl. It is killed when this is dropped.
pub(super) struct HolderProcess {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl HolderProcess {
    /// Starts a holder, and returns when it holds the lock.
    pub(super) async fn start(kind: &LockKind, name: &str, url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a process has a program"));
        command.env(VARIABLE, format!("{}\n{name}\n{url}", kind.name));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let orders = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut holder = Self { child, orders, answers };
        assert_eq!(holder.answer().await, "held");
        holder
    }

    /// Time since the start of its last renewal.
    pub(super) async fn age(&mut self) -> Duration {
        self.order("age").await;
        Duration::from_micros(self.answer().await.parse().expect("it answers with microseconds"))
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.child.start_kill().expect("it runs");
    }

    /// Makes it stop all its threads, as it works under the lock.
    pub(super) async fn pause(&mut self) {
        self.order("pause").await;
    }

    /// Lets it continue, and returns what it reports.
    pub(super) async fn resume(&mut self) -> String {
        let number = self.child.id().and_then(|number| Pid::from_raw(number as i32)).expect("it runs");
        kill_process(number, Signal::CONT).expect("it runs");
        self.answer().await
    }

    async fn order(&mut self, order: &str) {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.expect("it reads");
    }

    async fn answer(&mut self) -> String {
        self.answers.next_line().await.expect("it writes text").expect("it answers before it exits")
    }
}

/// Runs as a holder until the standard input ends.
pub(super) async fn serve(comparison: &Comparison, order: &str) {
    let parts: Vec<_> = order.splitn(3, '\n').collect();
    let [kind, name, url] = parts[..] else { panic!("{VARIABLE} has three lines") };
    let mut lock = (comparison.open)(url, kind, name, TTL).await;
    lock.acquire().await;
    let mut renewed = Instant::now();
    (comparison.write)(url, name, lock.token()).await;
    println!("held");
    let mut orders = orders();
    loop {
        let order = tokio::select! {
            biased;
            order = orders.recv() => order,
            () = tokio::time::sleep_until((renewed + TTL / 3).into()) => {
                renewed = Instant::now();
                lock.renew().await;
                continue;
            }
        };
        match order.as_deref() {
            None => return,
            Some("age") => println!("{}", renewed.elapsed().as_micros()),
            Some(_) => {
                kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
                // The signal may stop another thread of this process first.
                std::thread::sleep(Duration::from_millis(5));
                // It had checked its lock before the pause. So the write that was on its way comes first.
                let believes = lock.believes();
                let written = (comparison.write)(url, name, lock.token()).await;
                let renewed = lock.renew().await;
                println!("{believes:?} {written} {renewed:?}");
            }
        }
    }
}

/// The lines of the standard input. A thread reads them, because such a read cannot be cancelled.
fn orders() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}
