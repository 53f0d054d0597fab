//! Folders on a disk of this machine: where they may lie, what they are on, and what the kernel says about them.

pub(crate) mod desk;
pub(crate) mod doubt;
pub(crate) mod filesystem;
pub(crate) mod folder;
pub(crate) mod own;
pub(crate) mod place;
pub(crate) mod sheet;
pub(crate) mod trouble;
