//! The attacks, one file for each family.

mod blind;
mod clocks;
mod directory;
mod file_systems;
mod handles;
mod killed;
mod library;
mod scarce;
mod starved;
mod stopped;
mod users;
mod witness;

use crate::attack::Attack;

/// All attacks, in the order of the table.
pub(crate) fn all() -> Vec<Attack> {
    [
        file_systems::all(),
        witness::all(),
        killed::all(),
        stopped::all(),
        users::all(),
        blind::all(),
        starved::all(),
        directory::all(),
        clocks::all(),
        handles::all(),
        scarce::all(),
        library::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
