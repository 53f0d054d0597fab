use futures_util::{StreamExt, stream};
use tenure_store::{BoxStream, Prefix};

use super::folder::Folder;
use super::name::{self, Named, Stem};
use crate::inotify::{self, Target};

/// Hints on the keys of a folder that `prefix` covers; `None` where the kernel has no more to give.
pub(super) fn hints(folder: &Folder, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
    let prefix = prefix.clone();
    let changes = inotify::watch(folder, Target::Names, move |name| concerns(&prefix, name))?;
    let hints = stream::unfold(changes, async |mut changes| Some((changes.next().await?, changes)));
    Some(hints.boxed())
}

fn concerns(prefix: &Prefix, name: &[u8]) -> bool {
    let Named::Entry(stem) = name::parse(name) else { return false };
    match name::parse_stem(stem) {
        Stem::Of(key) => prefix.covers(&key),
        // Its key is in the file. To look is as much work for the one who waits as for the thread that asks here.
        Stem::Long => true,
        Stem::Foreign => false,
    }
}

#[cfg(test)]
mod tests {
    use tenure_store::Key;

    use super::*;

    #[test]
    fn entries_under_the_prefix_are_of_concern_and_nothing_else_in_the_folder() {
        let prefix = Prefix::parse("jobs").unwrap();
        let of = |name: &str| concerns(&prefix, name.as_bytes());
        assert!(of(&name::entry(&Key::parse("jobs/a").unwrap())));
        assert!(!of(&name::entry(&Key::parse("other/a").unwrap())));
        for name in ["jobs.lock", "tenure.mark", "00.tmp", "NOT-OURS.entry", ""] {
            assert!(!of(name), "{name}");
        }
    }
}
