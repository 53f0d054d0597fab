use std::collections::BTreeMap;

use tenure::simulation::PageFiles;

use super::Reached;
use super::world::world;

/// The pages of the logbooks and verdicts of a machine, by their directory and name.
#[derive(Default)]
pub(super) struct MachinePages {
    files: BTreeMap<(String, String), Vec<u8>>,
    locked: bool,
}

/// One directory of pages on a machine, as a process uses it.
#[derive(Debug)]
pub(super) struct PageFolder {
    pub(super) machine: usize,
    pub(super) directory: String,
}

impl PageFolder {
    fn with<T>(&self, with: impl FnOnce(&mut MachinePages) -> T) -> T {
        with(&mut world().machines[self.machine].pages.borrow_mut())
    }

    fn at(&self, name: &str) -> (String, String) {
        (self.directory.clone(), name.to_owned())
    }

    /// Fails by chance, as a full disk does.
    fn fails(&self) -> Result<(), String> {
        let world = world();
        if !world.healed.get() && world.chance(world.plan.page_failure) {
            world.reach(Reached::PageFailed);
            return Err("the disk is full".to_owned());
        }
        Ok(())
    }

    /// A page of another machine, as after its disk was copied. It was written on another clock.
    fn page_of_another_machine(&self) -> Option<Vec<u8>> {
        let world = world();
        let others = world.machines.iter().enumerate().filter(|(number, _)| *number != self.machine);
        let pages = others.flat_map(|(_, machine)| {
            let pages = machine.pages.borrow();
            let here = pages.files.iter().filter(|((directory, _), _)| *directory == self.directory);
            here.map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>()
        });
        pages.last()
    }
}

impl PageFiles for PageFolder {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.fails().ok()?;
        let world = world();
        let is_damaged = !world.healed.get() && world.chance(world.plan.page_damage);
        let mut bytes = self.with(|pages| pages.files.get(&self.at(name)).cloned());
        if is_damaged && world.chance(500) {
            let foreign = self.page_of_another_machine();
            if foreign.is_some() {
                world.reach(Reached::PageForeign);
            }
            bytes = foreign.or(bytes);
        } else if let Some(bytes) = bytes.as_mut().filter(|_| is_damaged) {
            world.reach(Reached::PageTorn);
            bytes.truncate(world.draw(|rng| rng.index(bytes.len().max(1))));
        }
        if bytes.is_some() {
            world.reach(Reached::PageRead);
        }
        bytes
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.fails()?;
        self.with(|pages| pages.files.insert(self.at(name), bytes.to_vec()));
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        self.fails()?;
        self.with(|pages| pages.files.remove(&self.at(name)));
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, String> {
        self.fails()?;
        let here = |pages: &mut MachinePages| {
            let names = pages.files.keys().filter(|(directory, _)| *directory == self.directory);
            names.map(|(_, name)| name.clone()).collect()
        };
        Ok(self.with(here))
    }

    fn locked(&self, act: &mut dyn FnMut() -> Result<(), String>) -> Result<bool, String> {
        if self.with(|pages| std::mem::replace(&mut pages.locked, true)) {
            return Ok(false);
        }
        // The kernel releases the lock, too, when its process is killed in the middle.
        let acted = act();
        self.with(|pages| pages.locked = false);
        acted.map(|()| true)
    }
}
