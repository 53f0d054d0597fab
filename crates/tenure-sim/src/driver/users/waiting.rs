use tenure_store::Key;

use crate::driver::world::{try_world, world};

/// An acquire that waits: its process may use what it is granted.
pub(super) struct Waiting(usize, Key);

impl Waiting {
    pub(super) fn new(process: usize, key: &Key) -> Self {
        *world().oracle.borrow_mut().waiting.entry((process, key.clone())).or_default() += 1;
        Self(process, key.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        if let Some(count) = world.oracle.borrow_mut().waiting.get_mut(&(self.0, self.1.clone())) {
            *count -= 1;
        }
    }
}
