use std::path::Path;
use std::time::{Duration, Instant};

use tenure::Coordinator;
use tenure_testkit::{block_on, sleep_ms};

use super::{Done, number, text};
use crate::arena::KEY;
use crate::stamps::{Stamps, boot_time};

/// Holds the lease through the library, and stamps while the holder believes.
///
/// It reads the clock before the check that confirms a stamp, so the holder provably believed at that instant.
pub(super) fn hold(url: &str, ttl: &str, wait: &str, directory: &str, label: &str, millis: &str) -> Done {
    let store = url.parse::<tenure_connect::StoreUrl>().map_err(text)?.open().map_err(text)?;
    let coordinator = block_on(Coordinator::connect(store)).map_err(text)?;
    let request = coordinator.lease(KEY).map_err(text)?.ttl(Duration::from_millis(number(ttl)?));
    let lease = block_on(request.wait(Duration::from_millis(number(wait)?)).acquire()).map_err(text)?;
    let mut stamps = Stamps::create(Path::new(directory), label).map_err(text)?;
    let limit = Duration::from_millis(number(millis)?);
    let began = Instant::now();
    while began.elapsed() < limit {
        let instant = boot_time();
        lease.check().map_err(text)?;
        stamps.add(instant).map_err(text)?;
        sleep_ms(2);
    }
    block_on(lease.release()).map_err(text)
}
