use std::time::{Duration, Instant};

use tenure::Coordinator;
use tenure::store::File;
use tenure_testkit::block_on;

use super::{Done, text};
use crate::raw;

/// Waits for a lease while a forked copy of this process connects again and takes another lease.
///
/// Prints the milliseconds from the release to the grant of the waiting thread. Fails if the child could not work.
pub(super) fn forking(directory: &str) -> Done {
    let connect = || block_on(Coordinator::connect(File::open(directory).map_err(text)?)).map_err(text);
    let coordinator = connect()?;
    let waits = connect()?;
    let lease = block_on(coordinator.lease("k").map_err(text)?.ttl(LONG).try_acquire()).map_err(text)?;
    let waiting = std::thread::spawn(move || {
        let lease = block_on(waits.lease("k").map_err(text)?.ttl(LONG).acquire()).map_err(text)?;
        Ok::<_, String>((Instant::now(), lease))
    });
    std::thread::sleep(Duration::from_millis(500));
    let code = raw::forked(|| {
        let work = || -> Done {
            let anew = connect()?;
            let lease = block_on(anew.lease("k").map_err(text)?.wait(Duration::from_millis(300)).acquire());
            if lease.is_ok() {
                return Err("the child was granted a lease that its parent holds".to_owned());
            }
            let other = block_on(anew.lease("other").map_err(text)?.try_acquire()).map_err(text)?;
            block_on(other.release()).map_err(text)
        };
        i32::from(work().inspect_err(|error| eprintln!("in the child: {error}")).is_err())
    });
    let code = code.map_err(text)?;
    if code != 0 {
        return Err(format!("a forked child that connects again exited with {code}"));
    }
    lease.check().map_err(text)?;
    let released = Instant::now();
    block_on(lease.release()).map_err(text)?;
    let (granted, lease) = waiting.join().map_err(|_| "the contender panicked")??;
    println!("{}", granted.duration_since(released).as_millis());
    block_on(lease.release()).map_err(text)
}

/// Long enough that no poll comes in time by chance: a contender polls three times per ttl.
const LONG: Duration = Duration::from_secs(60);
