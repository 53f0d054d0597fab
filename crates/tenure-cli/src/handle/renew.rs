use std::process::ExitCode;

use super::source::{HandleSource, connect};
use super::{HandleAnswer, check_deadline, lease_words, time_left_words};
use crate::args::{Args, HandleArgs};
use crate::exit::Failure;
use crate::{output, store};

/// Renews the lease of a handle, and prints the next handle.
pub(crate) fn renew(args: &Args, renew: &HandleArgs) -> Result<ExitCode, Failure> {
    let source = HandleSource::of(renew);
    let handle = source.read()?;
    // Before the renewal: a handle that could not be written would be lost.
    let replacement = source.file().map(|file| file.replacement()).transpose()?;
    let renewed = store::block_on(async { Ok(connect(args, &handle).await?.renew(&handle).await?) })?;
    let answer = HandleAnswer::of(&renewed).with_time_left(&renewed);
    let answered = match replacement {
        Some(replacement) => replacement
            .write(&renewed)
            .and_then(|()| if renew.json { output::answer_json(&answer) } else { Ok(()) }),
        None if renew.json => output::deliver_json(&answer.with_handle(&renewed)),
        None => output::deliver(&format!("{}\n", renewed.reveal())),
    };
    match answered {
        Ok(()) => check_deadline(&renewed).map(|()| ExitCode::SUCCESS),
        Err(failure) => Err(Failure::unavailable(format!(
            "{} was renewed, and its new handle is lost: {failure}. The lease runs out within {}",
            lease_words(&renewed),
            time_left_words(&renewed)
        ))),
    }
}
