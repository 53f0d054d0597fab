use tenure_store::Key;

use crate::driver::world::{try_world, world};

/// An operation that no other user of its process makes on this key at the same time.
pub(super) struct Alone(usize, Key);

impl Alone {
    /// `None` if another user makes one.
    pub(super) fn with(process: usize, key: &Key) -> Option<Self> {
        let is_first = world().oracle.borrow_mut().alone.insert((process, key.clone()));
        is_first.then(|| Self(process, key.clone()))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if let Some(world) = try_world() {
            world.oracle.borrow_mut().alone.remove(&(self.0, self.1.clone()));
        }
    }
}
