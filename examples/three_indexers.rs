//! At most three of any number of indexers work at a time. The others stand by, and one of them takes over the slot of an
//! indexer that exits, crashes or loses its connection to the store. TERM and Ctrl-C stop it cleanly.
//!
//! ```sh
//! cargo run -p tenure --example three_indexers -- /tmp/leases      # in four terminals; then kill -9 one that works
//! ```

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use tenure::store::File;
use tenure::{Coordinator, Error, ErrorKind, Slot};
use tokio::signal::unix::{SignalKind, signal};

/// All indexers use the same number. `tenure slots indexers --resize N` changes it.
const INDEXERS: u32 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    match indexer().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("three_indexers: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn indexer() -> Result<(), Error> {
    // Install the signal handlers first: without them, a signal kills the process at once.
    let ended = ended();

    let directory = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(directory)?).await?;

    tokio::select! {
        Err(error) = index_again_and_again(&coordinator) => return Err(error),
        () = ended => println!("stopping"),
    }
    // The slot is free at once.
    coordinator.shutdown().await
}

async fn index_again_and_again(coordinator: &Coordinator) -> Result<Infallible, Error> {
    loop {
        println!("standing by");
        let slots = coordinator.slots("indexers", INDEXERS)?.ttl(Duration::from_secs(15));
        let slot = slots.acquire().await?;
        match slot.run(index(&slot)).await {
            Ok(never) => match never {},
            // Lost: another indexer may have this slot now. The loop waits for the next free one.
            Err(error) if error.kind() == ErrorKind::Lost => println!("{error}"),
            Err(error) => return Err(error),
        }
    }
}

/// Indexes the part of the documents that belongs to the slot, such as those whose hash modulo three is its index.
/// Sends slot and token with every write: the index keeps the greatest token of each slot, and refuses a smaller one.
async fn index(slot: &Slot) -> Infallible {
    println!("indexing part {} of {INDEXERS}, with token {}", slot.index(), slot.token());
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
