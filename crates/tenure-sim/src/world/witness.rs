use std::collections::VecDeque;
use std::sync::Arc;

use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};

/// All the witness files of all machines, under an honest kernel.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    files: Vec<WitnessFile>,
}

/// One witness file.
#[derive(Debug)]
pub(super) struct WitnessFile {
    named: Arc<Witness>,
    host: usize,
    /// The boot of the host under which it was made.
    boot: u32,
    /// True if its holder has locked its part.
    guards: bool,
    /// True if a child of its holder has locked the other part.
    tree: bool,
    ring: VecDeque<Nonce>,
    removed: bool,
    copy: Option<WitnessCopy>,
}

/// What looks like a witness on another machine.
#[derive(Debug)]
struct WitnessCopy {
    host: usize,
    /// Whether it is an image of the disk, on which even the inode is the same.
    image: bool,
    ring: VecDeque<Nonce>,
}

/// What somebody on a machine sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WitnessLook {
    pub(super) sighting: Sighting,
    /// Whether it was a copy.
    pub(super) copied: bool,
}

impl Witnesses {
    /// Makes a locked file.
    pub(super) fn make(&mut self, host: usize, boot: u32, networked: bool) -> u32 {
        let number = self.files.len() as u32;
        let boot_id = networked.then(|| format!("boot-{host}-{boot}"));
        let named = Witness { name: format!("w{number}"), inode: u64::from(number), boot: boot_id };
        self.files.push(WitnessFile {
            named: Arc::new(named),
            host,
            boot,
            guards: true,
            tree: false,
            ring: VecDeque::with_capacity(RING),
            removed: false,
            copy: None,
        });
        number
    }

    /// What the record says about it.
    pub(super) fn named(&self, number: u32) -> Arc<Witness> {
        Arc::clone(&self.files[number as usize].named)
    }

    /// Lists a nonce before its request is sent.
    pub(super) fn list(&mut self, number: u32, nonce: Nonce) {
        let ring = &mut self.files[number as usize].ring;
        if ring.len() == RING {
            ring.pop_front();
        }
        ring.push_back(nonce);
    }

    /// Nobody acts any more who holds its lock.
    pub(super) fn unlock(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        (file.guards, file.tree) = (false, false);
    }

    /// Its holder dies, and a child that acts for it keeps its own part locked.
    pub(super) fn guards_die(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        (file.guards, file.tree) = (false, true);
    }

    /// Its holder has left in order and takes it away.
    pub(super) fn remove(&mut self, number: u32) {
        self.files[number as usize].removed = true;
    }

    /// Copies it to another machine: as a file like any other, or as part of an image that was made of the disk
    /// when the file was new.
    pub(super) fn copy(&mut self, number: u32, host: usize, image: bool) -> bool {
        let file = &mut self.files[number as usize];
        if file.host == host {
            return false;
        }
        let ring = if image { VecDeque::new() } else { file.ring.clone() };
        file.copy = Some(WitnessCopy { host, image, ring });
        true
    }

    /// What somebody on this host, which is in this boot, sees of the witness that a record names.
    pub(super) fn look(&self, named: &Witness, nonce: Nonce, host: usize, boot: u32) -> WitnessLook {
        let file = &self.files[named.inode as usize];
        if file.host == host && !file.removed {
            let same_boot = file.boot == boot;
            let sighting = Sighting {
                found: true,
                // Without a boot id in its name a file outlives a reboot, and its lock does not.
                same_file: same_boot || named.boot.is_none(),
                guards_locked: same_boot && file.guards,
                tree_locked: same_boot && file.tree,
                lists_nonce: file.ring.contains(&nonce),
            };
            return WitnessLook { sighting, copied: false };
        }
        match &file.copy {
            Some(copy) if copy.host == host => {
                let lists_nonce = copy.ring.contains(&nonce);
                let sighting =
                    Sighting { found: true, same_file: copy.image, lists_nonce, ..Sighting::default() };
                WitnessLook { sighting, copied: true }
            }
            _ => WitnessLook { sighting: Sighting::default(), copied: false },
        }
    }
}

/// How many nonces a witness lists.
const RING: usize = 8;
