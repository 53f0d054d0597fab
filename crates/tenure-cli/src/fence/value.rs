//! Fenced values: keys of the store, and objects of a bucket.

use std::io::Read;

use bytes::Bytes;
use tenure::fence::{FenceError, FencedValue, FencingToken};
use tenure::{Coordinator, Error, Key};

use super::Found;
use super::input::open_input;
use super::object::Object;
use crate::args::Args;
use crate::exit::Failure;
use crate::store;

/// Where a fenced value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValuePlace {
    /// A fenced value in the store of the command.
    Key(Key),
    /// An object of a bucket or a container.
    Object(Object),
}

impl ValuePlace {
    /// Replaces the value with standard input, and returns its length.
    pub(super) fn put(&self, args: &Args, token: &FencingToken) -> Result<u64, Failure> {
        let content = standard_input()?;
        let length = content.len() as u64;
        self.change(args, async |value| value.write(token, content).await)?;
        Ok(length)
    }

    /// Raises the mark.
    pub(super) fn seal(&self, args: &Args, token: &FencingToken) -> Result<(), Failure> {
        self.change(args, async |value| value.seal(token).await)
    }

    /// The mark, and the content; `None` if there is neither. Only reads.
    pub(super) fn find(&self, args: &Args) -> Result<Option<(Found, Bytes)>, Failure> {
        store::block_on(async {
            let Some((value, _coordinator)) = self.open_to_read(args).await? else { return Ok(None) };
            let Some(mark) = value.mark().await.map_err(refusal)? else { return Ok(None) };
            let content = value.read().await.map_err(refusal)?.map(|(_, content)| content);
            let length = content.as_ref().map(|content| content.len() as u64);
            Ok(Some((Found { mark: Some(mark), length, log_length: None }, content.unwrap_or_default())))
        })
    }

    /// Makes a change. A signal ends the command: like after a crash, the change was made or not.
    fn change(
        &self,
        args: &Args,
        act: impl AsyncFnOnce(FencedValue) -> Result<(), FenceError>,
    ) -> Result<(), Failure> {
        store::block_on(async {
            // It is checked that the store refuses what it must refuse: the fence depends on that.
            let (value, _coordinator) = match self {
                Self::Key(key) => {
                    let opened = store::open(args)?.store;
                    let coordinator = store::coordinator_without_logbook(args).connect(opened).await?;
                    (coordinator.fenced(key)?, coordinator)
                }
                Self::Object(object) => {
                    let opened = object.folder()?.open_one_more()?;
                    (object.open()?, store::coordinator_without_logbook(args).connect(opened).await?)
                }
            };
            act(value).await.map_err(refusal)
        })
    }

    async fn open_to_read(&self, args: &Args) -> Result<Option<(FencedValue, Option<Coordinator>)>, Failure> {
        Ok(match self {
            Self::Key(key) => match store::choose(args)?.connect_to_read().await? {
                Some(coordinator) => Some((coordinator.fenced(key)?, Some(coordinator))),
                None => None,
            },
            Self::Object(object) => Some((object.open()?, None)),
        })
    }
}

/// The content on standard input. It is read before the store is opened, which may be created.
fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = open_input()?.take(CONTENT_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("the value on standard input cannot be read: {error}")))?;
    if bytes.len() > CONTENT_MAX {
        return Err(Failure::usage(format!(
            "the value on standard input has more than {CONTENT_MAX} bytes, and no store holds that: shorten it, or use a file"
        )));
    }
    Ok(bytes)
}

fn refusal(error: FenceError) -> Failure {
    Error::from(error).into()
}

/// More than any store holds in one value. The limit of the store itself is less.
const CONTENT_MAX: usize = 64 << 20;
