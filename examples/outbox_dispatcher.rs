//! A singleton dispatcher of an outbox: several nodes run it, and only the leader sends. When the leader exits, crashes or
//! loses its connection to the store, another node continues where it stopped.
//!
//! ```sh
//! cargo run -p tenure --example outbox_dispatcher -- /tmp/leases /tmp/outbox   # in two terminals
//! touch /tmp/outbox/first                                                     # one of them sends it
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tenure::store::File;
use tenure::{Coordinator, Error, ErrorKind, Term};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    match node().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("outbox_dispatcher: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn node() -> Result<(), Error> {
    let mut term_signal = signal(SignalKind::terminate()).expect("a handler of TERM");
    let mut arguments = std::env::args_os().skip(1);
    let leases = arguments.next().unwrap_or_else(|| "/tmp/leases".into());
    let outbox = PathBuf::from(arguments.next().unwrap_or_else(|| "/tmp/outbox".into()));
    std::fs::create_dir_all(outbox.join("sent")).map_err(of_outbox)?;

    let coordinator = Coordinator::connect(File::open(leases)?).await?;
    let election = coordinator.election("outbox")?;
    println!("standing by");
    // One call for the complete life of the node: it leads, loses, campaigns again, and releases on the signal.
    let shutdown = async {
        term_signal.recv().await;
    };
    election.run(shutdown, |term| dispatch(outbox.clone(), term)).await?;
    coordinator.shutdown().await
}

/// Sends what is in the outbox, until it is dropped.
///
/// A crash after the send and before the rename sends the message again, so the receiver must recognise it by its name.
/// The token goes with every message: a receiver that refuses smaller tokens is safe from a leader that was paused.
async fn dispatch(outbox: PathBuf, term: Term) -> Result<(), Error> {
    println!("dispatching, with token {}", term.token());
    loop {
        for message in messages(&outbox).map_err(of_outbox)? {
            term.check()?;
            println!("sent {message}, with token {}", term.token());
            std::fs::rename(outbox.join(&message), outbox.join("sent").join(&message)).map_err(of_outbox)?;
        }
        #[expect(clippy::disallowed_methods, reason = "the outbox of a database would notify instead")]
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The names of the messages, in order.
fn messages(outbox: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(outbox)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn of_outbox(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("the outbox cannot be used: {error}")).because(error)
}
