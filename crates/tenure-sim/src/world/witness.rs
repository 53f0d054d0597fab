use std::collections::VecDeque;
use std::sync::Arc;

use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};

/// All witness files of all machines, under an honest kernel.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    files: Vec<WitnessFile>,
}

/// One witness file.
#[derive(Debug)]
pub(super) struct WitnessFile {
    named: Arc<Witness>,
    host: usize,
    /// The boot of the host under which it was created.
    boot: u32,
    /// True if its holder has locked its part.
    guards: bool,
    /// True if a child of its holder has locked the other part.
    tree: bool,
    ring: VecDeque<Nonce>,
    removed: bool,
    copy: Option<WitnessCopy>,
}

/// A file that looks like a witness on another machine.
#[derive(Debug)]
struct WitnessCopy {
    host: usize,
    /// True if it is part of a disk image, on which even the inode is the same.
    image: bool,
    ring: VecDeque<Nonce>,
}

/// Result of inspecting a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WitnessLook {
    pub(super) sighting: Sighting,
    /// True if it was a copy.
    pub(super) copied: bool,
}

impl Witnesses {
    /// Creates a locked file.
    pub(super) fn make(&mut self, host: usize, boot: u32, networked: bool) -> u32 {
        let number = self.files.len() as u32;
        let boot_id = networked.then(|| format!("boot-{host}-{boot}"));
        let named = Witness::new(format!("w{number}"), u64::from(number)).with_boot(boot_id);
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

    /// The witness as the record names it.
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

    /// Unlocks both parts: no process acts under the term any more.
    pub(super) fn unlock(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        (file.guards, file.tree) = (false, false);
    }

    /// The holder dies, and a child that acts for it keeps its own part locked.
    pub(super) fn guards_die(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        (file.guards, file.tree) = (false, true);
    }

    /// The holder has ended in order, and removes the file.
    pub(super) fn remove(&mut self, number: u32) {
        self.files[number as usize].removed = true;
    }

    /// Copies the file to another machine: as an ordinary file, or as part of a disk image that was made when the file
    /// was new.
    pub(super) fn copy(&mut self, number: u32, host: usize, image: bool) -> bool {
        let file = &mut self.files[number as usize];
        if file.host == host {
            return false;
        }
        let ring = if image { VecDeque::new() } else { file.ring.clone() };
        file.copy = Some(WitnessCopy { host, image, ring });
        true
    }

    /// Result of inspecting the witness that a record names, on this host in this boot.
    pub(super) fn look(&self, named: &Witness, nonce: Nonce, host: usize, boot: u32) -> WitnessLook {
        let file = &self.files[named.inode as usize];
        if file.host == host && !file.removed {
            let same_boot = file.boot == boot;
            let sighting = Sighting {
                found: true,
                // Without a boot id in its name a file survives a reboot, but its lock does not.
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

/// Number of nonces that a witness lists.
const RING: usize = 8;
