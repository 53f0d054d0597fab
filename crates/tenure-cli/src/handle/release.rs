use std::process::ExitCode;

use super::HandleAnswer;
use super::source::{HandleSource, connect};
use crate::args::{Args, HandleArgs};
use crate::exit::Failure;
use crate::{output, store};

/// Releases the lease of a handle.
pub(crate) fn release(args: &Args, release: &HandleArgs) -> Result<ExitCode, Failure> {
    let source = HandleSource::of(release);
    let handle = source.read()?;
    store::block_on(async { Ok(connect(args, &handle).await?.release(&handle).await?) })?;
    if let Some(file) = source.file() {
        file.remove(&handle);
    }
    if release.json {
        output::answer_json(&HandleAnswer::of(&handle))?;
    }
    Ok(ExitCode::SUCCESS)
}
