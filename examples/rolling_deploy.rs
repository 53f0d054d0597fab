//! A rolling deploy: the new version starts while the old one still leads, and takes over when the old one is stopped. They
//! overlap as processes, and never as leaders. The old version finishes its current step before it resigns.
//!
//! ```sh
//! cargo run -p tenure --example rolling_deploy -- /tmp/leases v1      # then v2 in another terminal, then Ctrl-C here
//! ```

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use tenure::store::File;
use tenure::{Coordinator, Error, ErrorKind, Holder, Term};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> ExitCode {
    // Install the handlers first: without them, a signal kills the process at once.
    let mut term = signal(SignalKind::terminate()).expect("a handler of TERM");
    let mut interrupt = signal(SignalKind::interrupt()).expect("a handler of Ctrl-C");
    let (stop, stopping) = watch::channel(false);
    let wait_for_signal = async {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
        std::future::pending::<Infallible>().await
    };
    let outcome = tokio::select! {
        outcome = node(stopping) => outcome,
        never = wait_for_signal => match never {},
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rolling_deploy: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn node(mut stopping: watch::Receiver<bool>) -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let leases = arguments.next().unwrap_or_else(|| "/tmp/leases".into());
    let version = arguments.next().unwrap_or_else(|| "v1".into());
    let coordinator = Coordinator::connect(File::open(leases)?).await?;
    // Observers see which version leads. The name may be the same for both: the tokens differ.
    let holder = Holder::new("deploy")?.label("version", &version)?;
    let election = coordinator.election("deploy")?.holder(holder);

    println!("{version} stands by");
    let mut campaign = election.campaign()?;
    while !*stopping.borrow() {
        let term = tokio::select! {
            term = campaign.next() => term?,
            _ = stopping.changed() => continue,
        };
        println!("{version} leads, with token {}", term.token());
        match term.run(work(&term, stopping.clone())).await {
            // Drained: only now may the other version begin.
            Ok(()) => term.resign().await?,
            Err(error) if error.kind() == ErrorKind::Lost => println!("{error}"),
            Err(error) => return Err(error),
        }
    }
    println!("{version} stops");
    coordinator.shutdown().await
}

/// Works step by step, and returns between two steps when this version is to stop. A step must be much shorter than the time
/// that the deployment gives a process to stop.
async fn work(term: &Term, stopping: watch::Receiver<bool>) {
    while !*stopping.borrow() {
        let _token = term.token(); // goes with every write of the step
        #[expect(clippy::disallowed_methods, reason = "a placeholder for one step of real work")]
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
