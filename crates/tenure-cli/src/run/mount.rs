use std::path::PathBuf;

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mount<'a> {
    /// The mounted part of the file system.
    root: &'a str,
    pub(super) point: &'a str,
    pub(super) kind: &'a str,
    /// Options of the file system, such as the controllers of a hierarchy of cgroups.
    pub(super) options: &'a str,
}

impl<'a> Mount<'a> {
    pub(super) fn all(mounts: &'a str) -> impl Iterator<Item = Self> {
        mounts.lines().filter_map(|line| {
            // id, parent, device, root, mount point, options, …, "-", type, source, options
            let (place, what) = line.split_once(" - ")?;
            let mut fields = place.split(' ').skip(3);
            let (root, point) = (fields.next()?, fields.next()?);
            let (kind, options) = (what.split(' ').next()?, what.split(' ').next_back()?);
            Some(Self { root, point, kind, options })
        })
    }

    /// The directory of a cgroup of this hierarchy; `None` if another part of it is mounted here, as in a container.
    pub(super) fn directory_of(&self, cgroup: &str) -> Option<PathBuf> {
        let inside = cgroup.strip_prefix(if self.root == "/" { "" } else { self.root })?;
        Some(PathBuf::from(format!("{}{inside}", self.point)))
    }
}
