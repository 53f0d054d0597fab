use std::sync::Arc;

use tenure::Coordinator;
use tenure::clock::{BootClock, Clock, Domain, Instant, WallTime};
use tenure::store::File;
use tenure_store::BoxFuture;
use tenure_testkit::block_on;

use super::{Done, number, text};
use crate::arena::KEY;

/// The clock of a machine whose wall clock stands still at another time.
#[derive(Debug)]
struct Elsewhen {
    boot: BootClock,
    wall: WallTime,
}

impl Clock for Elsewhen {
    fn now(&self) -> Instant {
        self.boot.now()
    }

    fn wall(&self) -> WallTime {
        self.wall
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        self.boot.sleep_until(at)
    }

    fn domain(&self) -> Option<Domain> {
        self.boot.domain()
    }
}

/// Takes and releases the lease while the wall clock stands still at this time, and prints the token.
pub(super) fn acquire_at(millis: &str, directory: &str) -> Done {
    let wall = WallTime::from_millis(number(millis)?);
    let clock: Arc<dyn Clock> = Arc::new(Elsewhen { boot: BootClock::new(), wall });
    let store = File::builder().clock(Arc::clone(&clock)).open(directory).map_err(text)?;
    let coordinator = block_on(Coordinator::builder().clock(clock).connect(store)).map_err(text)?;
    let lease = block_on(coordinator.lease(KEY).map_err(text)?.try_acquire()).map_err(text)?;
    println!("{}", lease.token());
    block_on(lease.release()).map_err(text)
}
