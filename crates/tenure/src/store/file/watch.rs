use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tenure_store::{BoxStream, Prefix};

use super::FileInner;
use super::directory::Directory;
use super::name::{self, FileName, Stem};
use crate::clock::{BootClock, Clock};
use crate::host::inotify::{self, Target};

/// Hints on the keys of a directory that `prefix` covers; `None` if the kernel has no more watches.
pub(super) fn hints(directory: &Directory, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
    let prefix = prefix.clone();
    let changes = inotify::watch(directory, Target::Names, move |name| concerns(&prefix, name))?;
    let hints = stream::unfold(changes, async |mut changes| Some((changes.next().await?, changes)));
    Some(hints.boxed())
}

/// Hints on all keys of a directory, by polling it: the number of watches of a user is limited, and many waiting
/// processes may use all of them.
pub(super) fn hints_by_polling(shared: Arc<FileInner>) -> BoxStream<'static, ()> {
    let looks = stream::unfold((shared, None), async |(shared, seen)| {
        let mut seen: Option<DirectoryTimes> = seen;
        loop {
            let now = shared.changed().await?;
            if seen.replace(now).is_some_and(|before| before != now) {
                return Some(((), (shared, seen)));
            }
            BootClock.sleep_until(BootClock.now() + inotify::UNTOLD).await;
        }
    });
    looks.boxed()
}

/// Time at which a name in the directory was last created, renamed or removed.
pub(super) type DirectoryTimes = (i64, i64);

/// The times of the directory; `None` if it is gone.
pub(super) fn changed(directory: &Directory) -> Option<DirectoryTimes> {
    let status = rustix::fs::fstat(directory).ok().filter(|status| status.st_nlink > 0)?;
    Some((status.st_mtime as i64, status.st_mtime_nsec as i64))
}

fn concerns(prefix: &Prefix, name: &[u8]) -> bool {
    let FileName::Entry(stem) = name::parse(name) else { return false };
    match name::parse_stem(stem) {
        Stem::Of(key) => prefix.covers(&key),
        // The key is in the file. Reading it here costs as much as a spurious hint costs the waiting process.
        Stem::Long => true,
        Stem::Foreign => false,
    }
}

#[cfg(test)]
mod tests {
    use tenure_store::Key;

    use super::*;

    #[test]
    fn only_entries_under_the_prefix_concern_a_watch() {
        let prefix = Prefix::parse("jobs").unwrap();
        let of = |name: &str| concerns(&prefix, name.as_bytes());
        assert!(of(&name::entry(&Key::parse("jobs/a").unwrap())));
        assert!(!of(&name::entry(&Key::parse("other/a").unwrap())));
        for name in ["jobs.lock", "tenure.mark", "00.tmp", "NOT-OURS.entry", ""] {
            assert!(!of(name), "{name}");
        }
    }
}
