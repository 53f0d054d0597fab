use rustix::fs::inotify;

use super::{Done, number};

use tenure_testkit::sleep_ms;

/// Uses up the inotify instances of this user for `millis`.
pub(super) fn inotify(millis: &str) -> Done {
    let mut instances = Vec::new();
    while let Ok(instance) = inotify::init(inotify::CreateFlags::CLOEXEC) {
        instances.push(instance);
    }
    println!("{}", instances.len());
    sleep_ms(number(millis)?);
    Ok(())
}
