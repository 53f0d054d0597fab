//! Directories on a local disk: safe places, file systems, owners of locks, and errors of the kernel.

pub(crate) mod directory;
pub(crate) mod filesystem;
pub(crate) mod io_error;
pub(crate) mod lock_owner;
pub(crate) mod page;
mod page_directory;
pub(crate) mod page_files;
pub(crate) mod path_safety;
pub(crate) mod per_boot_files;
pub(crate) mod private_dir;
pub(crate) mod refusal;
pub(crate) mod write_out;
