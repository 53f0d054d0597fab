//! A job without an executor: it handles what comes in, line by line, and one process does so at a time.
//!
//! ```sh
//! cargo run -p tenure --example blocking_job -- /tmp/leases      # in two terminals; type lines, and end with Ctrl-D
//! ```

use std::time::Duration;

use tenure::Error;
use tenure::blocking::Coordinator;
use tenure::store::File;

fn main() -> Result<(), Error> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(folder)?)?;

    println!("standing by");
    // The keeper renews on a thread of its own, also while this one waits for a line.
    let lease = coordinator.lease("job")?.ttl(Duration::from_secs(15)).acquire()?;
    println!("working, with token {}", lease.token());

    for line in std::io::stdin().lines() {
        let line = line.expect("lines of text");
        // After a loss another process may work: the error says why, and ends this one.
        lease.check()?;
        // The resource that it writes to gets the token too, and refuses a smaller one than it has seen.
        println!("{line}, with token {}", lease.token());
    }

    // The next one is granted at once. A lease that is only dropped may still be there when the process is gone.
    lease.release()
}
