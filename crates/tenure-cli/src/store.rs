//! Which store the command works on.

use tenure::store::File;

use crate::args::Args;
use crate::exit::{self, Failure};

/// Opens the store that the user named.
pub(crate) fn open(args: &Args) -> Result<File, Failure> {
    match args.store.as_deref().and_then(|url| url.strip_prefix("file://")) {
        Some(path) => Ok(File::open(path)?),
        None => Err(Failure::new(exit::USAGE, "name a store: --store file:///path")),
    }
}
