//! A job without an executor: it handles standard input line by line, in one process at a time.
//!
//! ```sh
//! cargo run -p tenure --example blocking_job -- /tmp/leases      # in two terminals; type lines, then Ctrl-D
//! ```

use std::time::Duration;

use tenure::Error;
use tenure::blocking::Coordinator;
use tenure::store::File;

fn main() -> Result<(), Error> {
    let directory = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(directory)?)?;

    println!("standing by");
    // The keeper renews on its own thread, even while this one waits for a line.
    let lease = coordinator.lease("job")?.ttl(Duration::from_secs(15)).acquire()?;
    println!("working, with token {}", lease.token());

    for line in std::io::stdin().lines() {
        let line = line.expect("lines of text");
        // After a loss, another process may be working: this one stops with the reason.
        lease.check()?;
        // Send the token with every write, so that the resource can refuse a token smaller than one it has seen.
        println!("{line}, with token {}", lease.token());
    }

    // Release before the process exits, so that the next job starts at once. Dropping the lease only requests a
    // release, and the process may exit before the keeper has sent it.
    lease.release()
}
