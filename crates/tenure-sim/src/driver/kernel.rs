use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use futures_util::stream;
use tenure::simulation::{LockedFile, WitnessFiles};
use tenure::{Sighting, Survivors, WitnessPart};
use tenure_core::record::{Nonce, Witness};
use tenure_store::BoxStream;
use tokio::sync::mpsc;

use super::Reached;
use super::world::{try_world, world};
use crate::time::MILLI;

/// The files of the witnesses of one machine, and their locks.
#[derive(Default)]
pub(super) struct Kernel {
    files: BTreeMap<String, KernelFile>,
    inodes: u64,
}

struct KernelFile {
    inode: u64,
    locked: bool,
    nonces: Vec<Nonce>,
    watchers: Vec<mpsc::UnboundedSender<()>>,
}

impl Kernel {
    /// The file that a record names, if it is there.
    fn find(&mut self, named: &Witness) -> io::Result<&mut KernelFile> {
        let file = self.files.get_mut(&named.name).filter(|file| file.inode == named.inode);
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Sighting of a contender that looks now.
    pub(super) fn sighting(&mut self, named: &Witness, nonce: Nonce) -> io::Result<Sighting> {
        let file = self.find(named)?;
        let mut seen = Sighting::default();
        (seen.found, seen.same_file) = (true, true);
        (seen.guards_locked, seen.lists_nonce) = (file.locked, file.nonces.contains(&nonce));
        Ok(seen)
    }

    /// True if the file is there.
    pub(super) fn has(&mut self, named: &Witness) -> bool {
        self.find(named).is_ok()
    }
}

/// The directory of witnesses on a machine, as a process uses it.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) machine: usize,
    /// True if no lock holds, as on an overlay, although `keeps_locks` is true.
    pub(super) loses_locks: bool,
}

impl Directory {
    /// Uses the kernel, unless the disk fails.
    fn with<T>(&self, with: impl FnOnce(&mut Kernel) -> io::Result<T>) -> io::Result<T> {
        with_kernel(self.machine, with)
    }
}

fn with_kernel<T>(machine: usize, with: impl FnOnce(&mut Kernel) -> io::Result<T>) -> io::Result<T> {
    let world = world();
    if !world.healed.get() && world.chance(world.plan.disk_failure) {
        world.reach(Reached::DiskFailed);
        return Err(io::ErrorKind::StorageFull.into());
    }
    with(&mut world.machines[machine].kernel.borrow_mut())
}

impl WitnessFiles for Directory {
    fn keeps_locks(&self) -> bool {
        true
    }

    fn make(self: Arc<Self>, random: u128) -> io::Result<Box<dyn LockedFile>> {
        let loses_locks = self.loses_locks;
        let named = self.with(|kernel| {
            kernel.inodes += 1;
            let (name, inode) = (format!("{random:032x}.witness"), kernel.inodes);
            let file = KernelFile { inode, locked: !loses_locks, nonces: Vec::new(), watchers: Vec::new() };
            kernel.files.insert(name.clone(), file);
            Ok(Witness::new(name, inode).with_boot(Some(format!("boot-{}", self.machine))))
        })?;
        Ok(Box::new(LockedWitness { machine: self.machine, named: Arc::new(named) }))
    }

    fn try_look(&self, named: &Witness, nonce: Nonce) -> io::Result<Sighting> {
        if named.boot.as_deref() != Some(&format!("boot-{}", self.machine)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.with(|kernel| kernel.sighting(named, nonce))
    }

    fn survivors(&self, _: &Witness, _: Nonce) -> Option<Survivors> {
        None
    }

    fn watch(&self, named: &Witness) -> Option<BoxStream<'static, ()>> {
        let world = world();
        if world.chance(world.plan.unwatchable) {
            return None;
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        self.with(|kernel| kernel.find(named).map(|file| file.watchers.push(sender))).ok()?;
        Some(Box::pin(stream::unfold(receiver, async |mut told| Some((told.recv().await?, told)))))
    }

    fn remove_dead(&self, named: &Witness) -> io::Result<()> {
        self.with(|kernel| {
            if !kernel.find(named)?.locked {
                kernel.files.remove(&named.name);
            }
            Ok(())
        })
    }
}

/// A witness that a process has locked.
#[derive(Debug)]
struct LockedWitness {
    machine: usize,
    named: Arc<Witness>,
}

impl LockedWitness {
    /// Tells the watchers that a process closed the file, perhaps late.
    fn tell(&self) {
        let Some(world) = try_world() else { return };
        let (machine, named) = (self.machine, Arc::clone(&self.named));
        let late = world.draw(|rng| rng.skewed(0, 5 * MILLI));
        world.after(late, move |world| {
            if let Ok(file) = world.machines[machine].kernel.borrow_mut().find(&named) {
                file.watchers.retain(|watcher| watcher.send(()).is_ok());
            }
        });
    }
}

impl LockedFile for LockedWitness {
    fn named(&self) -> &Arc<Witness> {
        &self.named
    }

    fn list(&self, nonce: Nonce) -> io::Result<()> {
        with_kernel(self.machine, |kernel| {
            kernel.find(&self.named)?.nonces.push(nonce);
            Ok(())
        })?;
        self.tell();
        Ok(())
    }

    fn is_in_memory(&self) -> bool {
        world().plan.witnesses_in_memory
    }

    fn list_for_trial(&self, nonce: Nonce) -> io::Result<()> {
        self.list(nonce)
    }

    fn share(&self, _: WitnessPart) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self) -> io::Result<()> {
        with_kernel(self.machine, |kernel| {
            kernel.find(&self.named)?;
            kernel.files.remove(&self.named.name);
            Ok(())
        })
    }

    fn remove_by_name(&self) -> io::Result<()> {
        self.remove()
    }
}

impl Drop for LockedWitness {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        if let Ok(file) = world.machines[self.machine].kernel.borrow_mut().find(&self.named) {
            file.locked = false;
        }
        self.tell();
    }
}
