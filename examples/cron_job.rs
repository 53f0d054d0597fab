//! A job that must not run twice at the same time. The second one exits with success and leaves the work to the first.
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
    // The message of an error names key, holder, token and store, and the next step: print it unchanged.
    job().await.unwrap_or_else(|error| {
        eprintln!("cron_job: {error}");
        ExitCode::FAILURE
    })
}

async fn job() -> Result<ExitCode, Error> {
    let directory = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(directory)?).await?;

    // `try_acquire` does not wait. Waiting jobs would run one after the other once the slow one is done.
    let lease = match coordinator.lease("backup")?.try_acquire().await {
        Ok(lease) => lease,
        Err(error) if error.kind() == ErrorKind::Held => {
            println!("skipped: {error}");
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(error),
    };

    // `run` polls the work only while the lease is provably held, and drops it as soon as it is not.
    lease.run(back_up(lease.token())).await?;

    // Release before `main` returns. Dropping the lease only requests a release, and the process may exit before the
    // keeper has sent it.
    lease.release().await?;
    Ok(ExitCode::SUCCESS)
}

/// Sends the token with every write, so that the resource can refuse a token smaller than one it has seen.
async fn back_up(token: Token) {
    println!("backing up, with token {token}");
    #[expect(clippy::disallowed_methods, reason = "a placeholder for real work")]
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!("done");
}
