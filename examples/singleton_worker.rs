//! A singleton worker. The others stand by, and one of them takes over when the worker exits, crashes or loses its
//! connection to the store. TERM and Ctrl-C stop it cleanly.
//!
//! ```sh
//! cargo run -p tenure --example singleton_worker -- /tmp/leases      # in two terminals; then kill -9 the worker
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
    // Install the signal handlers first: without them, a signal kills the process at once.
    let ended = ended();

    let directory = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(directory)?).await?;

    tokio::select! {
        // This never completes, and fails only if the call or the store is wrong.
        Err(error) = lead_again_and_again(&coordinator) => return Err(error),
        // The future above is dropped here: the work stops, and this process no longer waits for a lease.
        () = ended => println!("stopping"),
    }
    // The next worker starts at once. If the store is unreachable, this takes little more than one ttl, and the lease
    // lapses.
    coordinator.shutdown().await
}

async fn lead_again_and_again(coordinator: &Coordinator) -> Result<Infallible, Error> {
    loop {
        println!("standing by");
        // If this machine dies, the others wait for the ttl. If only this process dies, they take over at once.
        let lease = coordinator.lease("worker")?.ttl(Duration::from_secs(15)).acquire().await?;

        // `run` polls the work only while the lease is provably held, and drops it as soon as it is not.
        match lease.run(work(lease.token())).await {
            Ok(never) => match never {},
            // Lost: another worker may be working now. There is nothing to undo, and the loop starts a new term.
            Err(error) if error.kind() == ErrorKind::Lost => println!("{error}"),
            Err(error) => return Err(error),
        }
    }
}

/// Sends the token with every write, so that the resource can refuse a token smaller than one it has seen.
async fn work(token: Token) -> Infallible {
    println!("working, with token {token}");
    loop {
        #[expect(clippy::disallowed_methods, reason = "a placeholder for real work")]
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Installs the handlers at once. The future completes when TERM or Ctrl-C arrives.
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
