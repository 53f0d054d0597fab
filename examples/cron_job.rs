//! A job that must not run twice at the same time. Whoever comes second leaves it to the first, politely.
//!
//! ```sh
//! cargo run -p tenure --example cron_job -- /tmp/leases & cargo run -p tenure --example cron_job -- /tmp/leases
//! ```

use std::process::ExitCode;
use std::time::Duration;

use tenure::store::File;
use tenure::{Coordinator, Error, ErrorKind, Token};

#[tokio::main]
async fn main() -> ExitCode {
    // The sentence of an error names key, holder, token and store, and the next step: show it as it is.
    job().await.unwrap_or_else(|error| {
        eprintln!("cron_job: {error}");
        ExitCode::FAILURE
    })
}

async fn job() -> Result<ExitCode, Error> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(folder)?).await?;

    // `try_acquire` does not wait: jobs that queue up would run one after the other when the slow one is done.
    let lease = match coordinator.lease("backup")?.try_acquire().await {
        Ok(lease) => lease,
        Err(error) if error.kind() == ErrorKind::Held => {
            println!("left to somebody else: {error}");
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(error),
    };

    // The work is polled only while the lease is provably held, and dropped the moment it is not.
    lease.run(back_up(lease.token())).await?;

    // Let go before the end of `main`. A lease that is only dropped may still be there when the process is gone.
    lease.release().await?;
    Ok(ExitCode::SUCCESS)
}

/// Whatever it writes to gets the token too, and refuses a smaller one than it has seen.
async fn back_up(token: Token) {
    println!("backing up, with token {token}");
    #[expect(clippy::disallowed_methods, reason = "this stands for work, which takes its own time")]
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!("done");
}
