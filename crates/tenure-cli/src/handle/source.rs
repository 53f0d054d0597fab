use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use tenure::{Coordinator, Handle};

use super::file::HandleFile;
use crate::args::{Args, HandleArgs};
use crate::exit::Failure;
use crate::store;

/// The source of a handle.
#[derive(Debug)]
pub(super) enum HandleSource<'a> {
    Argument(&'a str),
    Input,
    File(HandleFile),
}

/// The output of `acquire --json` and `renew --json`, as far as needed here.
#[derive(Deserialize)]
struct Printed {
    handle: String,
}

impl<'a> HandleSource<'a> {
    pub(super) fn of(args: &'a HandleArgs) -> Self {
        match (&args.file, args.handle.as_deref()) {
            (Some(path), _) => Self::File(HandleFile::at(Path::new(path))),
            (None, None | Some("-")) => Self::Input,
            (None, Some(text)) => Self::Argument(text),
        }
    }

    pub(super) fn file(&self) -> Option<&HandleFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Argument(_) | Self::Input => None,
        }
    }

    /// The handle, from text or from a JSON object.
    pub(super) fn read(&self) -> Result<Handle, Failure> {
        let text = match self {
            Self::Argument(text) => (*text).to_owned(),
            Self::File(file) => file.read()?,
            Self::Input => {
                let mut text = String::new();
                std::io::stdin().take(INPUT_MAX).read_to_string(&mut text).map_err(|error| {
                    Failure::usage(format!("the handle could not be read from standard input: {error}"))
                })?;
                text
            }
        };
        let text = text.trim();
        if text.is_empty() {
            let sentence = "there is no handle: give it as an argument, with --file, or on standard input";
            return Err(Failure::usage(sentence));
        }
        let printed = serde_json::from_str::<Printed>(text).ok();
        Ok(printed.map_or_else(|| text.parse(), |printed| printed.handle.parse())?)
    }
}

/// Connects to the store of a handle.
pub(super) async fn connect(args: &Args, handle: &Handle) -> Result<Coordinator, Failure> {
    let store = store::open_for(args, handle)?;
    Ok(store::coordinator_without_logbook(args).connect(store.store).await?)
}

/// More than the longest output with a handle in it.
const INPUT_MAX: u64 = 64 * 1024;
