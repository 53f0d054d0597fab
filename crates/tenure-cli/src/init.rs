//! `tenure store init`.

use std::process::ExitCode;

use crate::args::{Args, Init};
use crate::exit::Failure;
use crate::output::{self, plain};
use crate::store;

/// Creates the directory or the tables of the store, or prints the statements that create them.
pub(crate) fn init(args: &Args, init: &Init) -> Result<ExitCode, Failure> {
    let store = match &init.url {
        Some(url) => store::named(url)?,
        None => store::choose(args)?,
    };
    if !init.print {
        store::block_on(store.create())?;
        output::say(&format!("{} is ready for leases", plain(&store.url())));
        return Ok(ExitCode::SUCCESS);
    }
    if init.fences {
        let statements = store.fence_statements()?.ok_or_else(|| {
            let url = store.url();
            Failure::usage(format!(
                "{url} is not a PostgreSQL database, and only PostgreSQL has statements for fences. Name one: tenure store init \
                 --print --fences postgres://role@host/database"
            ))
        })?;
        output::answer(&statements)?;
        return Ok(ExitCode::SUCCESS);
    }
    match store.creation_statements() {
        Some(statements) => output::answer(&statements)?,
        None => output::say(&format!("{} is created without statements", plain(&store.url()))),
    }
    Ok(ExitCode::SUCCESS)
}
