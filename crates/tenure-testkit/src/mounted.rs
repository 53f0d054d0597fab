//! File systems of every kind, for tests of the kernel's behaviour on each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::helpers::skipped;
use crate::home::Home;

/// A kind of file system inside which tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// In memory.
    Tmpfs,
    /// On a loop device, like every disk here.
    Ext4,
    /// On a loop device.
    Xfs,
    /// On a loop device.
    Btrfs,
    /// The kernel's overlay, with its upper layer in memory and its lower layer on another file system.
    OverlayOnTmpfs,
    /// The kernel's overlay, with both layers on one ext4.
    OverlayOnExt4,
    /// FUSE: passes another directory through.
    Bindfs,
    /// FUSE: the overlay of rootless containers.
    FuseOverlayfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Tmpfs,
        Self::Ext4,
        Self::Xfs,
        Self::Btrfs,
        Self::OverlayOnTmpfs,
        Self::OverlayOnExt4,
        Self::Bindfs,
        Self::FuseOverlayfs,
    ];

    /// True if Tenure opens a store here only when the user accepts the file system by its name, `fuse`.
    pub fn is_fuse(self) -> bool {
        matches!(self, Self::Bindfs | Self::FuseOverlayfs)
    }

    /// Human-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::OverlayOnTmpfs => "an overlay, upper tmpfs",
            Self::OverlayOnExt4 => "an overlay, upper ext4",
            Self::Bindfs => "bindfs",
            Self::FuseOverlayfs => "fuse-overlayfs",
        }
    }

    /// Programs that create and mount it, beside `mount` and `umount`.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Tmpfs | Self::OverlayOnTmpfs => &[],
            Self::Ext4 | Self::OverlayOnExt4 => &["mkfs.ext4"],
            Self::Xfs => &["mkfs.xfs"],
            Self::Btrfs => &["mkfs.btrfs"],
            Self::Bindfs => &["mkfs.ext4", "bindfs"],
            Self::FuseOverlayfs => &["mkfs.ext4", "fuse-overlayfs"],
        }
    }
}

/// A file system that is mounted for one test. Dropping it unmounts the file system and frees its loop device.
#[derive(Debug)]
pub struct Mounted {
    kind: FileSystem,
    path: PathBuf,
    /// In the order in which they were mounted.
    mounts: Vec<PathBuf>,
    home: Home,
}

impl Mounted {
    /// Mounts an empty file system of this kind; `None` if this machine cannot, after a call of [`skipped`].
    pub fn new(kind: FileSystem) -> Option<Self> {
        Self::with_lower(kind, |_| {})
    }

    /// The same, for an overlay whose lower layer `fill` fills.
    pub fn with_lower(kind: FileSystem, fill: impl FnOnce(&Path)) -> Option<Self> {
        Self::try_with_lower(kind, fill).map_err(|why| skipped(&why)).ok()
    }

    /// Mounts an empty file system of this kind. The error says what this machine lacks.
    pub fn try_new(kind: FileSystem) -> Result<Self, String> {
        Self::try_with_lower(kind, |_| {})
    }

    fn try_with_lower(kind: FileSystem, fill: impl FnOnce(&Path)) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err(format!("only root can mount {kind:?}"));
        }
        if let Some(missing) = kind.needs().iter().find(|program| !is_installed(program)) {
            return Err(format!("{missing} is not installed, which {kind:?} needs"));
        }
        if kind.is_fuse() && !Path::new("/dev/fuse").exists() {
            return Err(format!("there is no /dev/fuse, which {kind:?} needs"));
        }
        let home = Home::new("mounted").unwrap_or_else(|error| panic!("no directory for {kind:?}: {error}"));
        let mut mounted = Self { kind, path: home.path().join("mounted"), mounts: Vec::new(), home };
        if !mounted.mount_memory() {
            return Err(format!("root may not mount here, which {kind:?} needs"));
        }
        mounted.mount_all(fill);
        Ok(mounted)
    }

    /// Runs `test` inside each of them, all at the same time: such a test mostly waits.
    pub fn each(kinds: &[FileSystem], test: impl Fn(&Self) + Sync) {
        std::thread::scope(|scope| {
            let test = &test;
            for &kind in kinds {
                scope.spawn(move || Self::new(kind).iter().for_each(test));
            }
        });
    }

    /// The kind of file system.
    pub fn kind(&self) -> FileSystem {
        self.kind
    }

    /// The directory on which it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory on a private tmpfs, for `XDG_RUNTIME_DIR`.
    pub fn runtime(&self) -> PathBuf {
        self.directory("memory/runtime")
    }

    /// Runs tests of this same binary again, one after another, with their directories in here: [`tests_in`] returns
    /// this path to them. Skips tests whose names contain one of `skip`.
    #[track_caller]
    pub fn rerun(&self, tests: &[&str], skip: &[&str]) {
        let mut command = Command::new(std::env::current_exe().expect("this binary has a path"));
        command.args(tests).args(["--test-threads", "1", "--nocapture"]);
        for name in skip {
            command.args(["--skip", name]);
        }
        command.env(TESTS_IN, &self.path).env("XDG_RUNTIME_DIR", self.runtime());
        let output = command.stdin(Stdio::null()).output().expect("this binary can be started");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(output.status.success(), "inside {:?}: {}\n{}", self.kind, said[0], said[1]);
        let ran = said[0].matches(" ... ").count();
        assert!(ran > 0, "inside {:?} no test ran: {}", self.kind, said[0]);
        println!("inside {:?}: {ran} tests passed", self.kind);
    }

    /// Mounts a tmpfs for files that should not wait for a disk. False if the kernel does not permit it, as in a
    /// container without privileges.
    fn mount_memory(&mut self) -> bool {
        let memory = self.directory("memory");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "mode=700", "tmpfs"]).arg(&memory);
        let permitted = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        self.mounts.extend(permitted.then_some(memory));
        permitted
    }

    fn mount_all(&mut self, fill: impl FnOnce(&Path)) {
        let path = self.directory("mounted");
        let layers = self.directory("layers");
        match self.kind {
            FileSystem::Tmpfs => self.mount(&["-t", "tmpfs", "tmpfs"], &path),
            FileSystem::Ext4 => self.mount_image("mkfs.ext4", &["-q"], &path),
            FileSystem::Xfs => self.mount_image("mkfs.xfs", &["-q"], &path),
            FileSystem::Btrfs => self.mount_image("mkfs.btrfs", &["-q"], &path),
            FileSystem::OverlayOnTmpfs => {
                self.mount(&["-t", "tmpfs", "tmpfs"], &layers);
                let lower = self.directory("lower");
                fill(&lower);
                self.mount_overlay(&lower, &layers, &path);
            }
            FileSystem::OverlayOnExt4 => {
                self.mount_image("mkfs.ext4", &["-q"], &layers);
                let lower = self.directory("layers/lower");
                fill(&lower);
                self.mount_overlay(&lower, &layers, &path);
            }
            FileSystem::Bindfs => {
                self.mount_image("mkfs.ext4", &["-q"], &layers);
                let below = self.directory("layers/below");
                run(Command::new("bindfs").args([&below, &path]));
                self.mounts.push(path);
            }
            FileSystem::FuseOverlayfs => {
                self.mount_image("mkfs.ext4", &["-q"], &layers);
                let lower = self.directory("layers/lower");
                fill(&lower);
                let options = self.overlay_options(&lower, &layers);
                run(Command::new("fuse-overlayfs").args(["-o", &options]).arg(&path));
                self.mounts.push(path);
            }
        }
    }

    fn mount_overlay(&mut self, lower: &Path, layers: &Path, path: &Path) {
        let options = self.overlay_options(lower, layers);
        self.mount(&["-t", "overlay", "-o", &options, "overlay"], path);
    }

    fn overlay_options(&self, lower: &Path, layers: &Path) -> String {
        let [upper, work] = ["upper", "work"].map(|name| {
            let layer = layers.join(name);
            fs::create_dir_all(&layer).expect("it was just mounted");
            layer.display().to_string()
        });
        format!("lowerdir={},upperdir={upper},workdir={work}", lower.display())
    }

    /// The image is sparse: it takes only as much memory as is written to it.
    fn mount_image(&mut self, make: &str, options: &[&str], path: &Path) {
        let image = self.directory("memory").join("image");
        let file = fs::File::create(&image).expect("a file of our own");
        file.set_len(IMAGE_BYTES).expect("a sparse file");
        run(Command::new(make).args(options).arg(&image));
        // The kernel frees this loop device when it is unmounted.
        self.mount(&["-o", "loop", &image.display().to_string()], path);
    }

    fn mount(&mut self, what: &[&str], path: &Path) {
        run(Command::new("mount").args(what).arg(path));
        self.mounts.push(path.to_owned());
    }

    fn directory(&self, name: &str) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir_all(&path).expect("a directory of our own");
        path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for path in self.mounts.iter().rev() {
            let unmount = |lazy: &[&str]| {
                let mut command = Command::new("umount");
                command.args(lazy).arg(path).stderr(Stdio::null());
                command.status().is_ok_and(|status| status.success())
            };
            // A process of a failed test may still be in it. The kernel frees the mount when that process exits.
            if !unmount(&[]) && !unmount(&["-l"]) {
                eprintln!("{} could not be unmounted", path.display());
            }
        }
    }
}

/// The directory for tests: inside a [`Mounted`] that runs them again, otherwise `usually`.
pub fn tests_in(usually: impl Into<PathBuf>) -> PathBuf {
    std::env::var_os(TESTS_IN).map_or_else(|| usually.into(), PathBuf::from)
}

fn is_installed(program: &str) -> bool {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| directory.join(program).is_file())
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {said}");
}

const TESTS_IN: &str = "TENURE_TESTS_IN";

/// The smallest size that xfs supports.
const IMAGE_BYTES: u64 = 320 << 20;
