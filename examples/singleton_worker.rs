//! A worker of which one works at a time. The others stand by, and one of them takes over when it ends, crashes or is cut
//! off. TERM and Ctrl-C end it in order.
//!
//! ```sh
//! cargo run -p tenure --example singleton_worker -- /tmp/leases      # in two terminals; then kill -9 the one that works
//! ```

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use tenure::store::File;
use tenure::{Coordinator, Error, ErrorKind, Token};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    match worker().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("singleton_worker: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn worker() -> Result<(), Error> {
    // First of all: a signal that nobody listens for ends the process where it is.
    let ended = ended();

    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(folder)?).await?;

    tokio::select! {
        // It never ends by itself, and only fails if the call or the store is wrong.
        Err(error) = lead_again_and_again(&coordinator) => return Err(error),
        // All that is above is dropped at this point: the work first, and then nobody waits for a lease any more.
        () = ended => println!("ending"),
    }
    // The next one is granted at once. If the store is away, this takes little more than one ttl, and the lease lapses.
    coordinator.shutdown().await
}

async fn lead_again_and_again(coordinator: &Coordinator) -> Result<Infallible, Error> {
    loop {
        println!("standing by");
        // The ttl is how long the others wait if this machine dies. If only this process dies, they need not wait at all.
        let lease = coordinator.lease("worker")?.ttl(Duration::from_secs(15)).acquire().await?;

        // The work is polled only while the lease is provably held, and dropped the moment it is not.
        match lease.run(work(lease.token())).await {
            Ok(never) => match never {},
            // Lost: somebody else may work now. Nothing is to be undone, and the next term is another one.
            Err(error) if error.kind() == ErrorKind::Lost => println!("{error}"),
            Err(error) => return Err(error),
        }
    }
}

/// Whatever it writes to gets the token too, and refuses a smaller one than it has seen.
async fn work(token: Token) -> Infallible {
    println!("working, with token {token}");
    loop {
        #[expect(clippy::disallowed_methods, reason = "this stands for work, which takes its own time")]
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Listens from now on, and is ready once TERM or Ctrl-C has come.
fn ended() -> impl Future<Output = ()> {
    let mut term = signal(SignalKind::terminate()).expect("a handler of TERM");
    let mut interrupt = signal(SignalKind::interrupt()).expect("a handler of Ctrl-C");
    async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}
