//! `tenure fence`: writes that the resource refuses when a newer holder has been there.

mod file;
mod granted;
mod input;
mod object;
mod offered;
mod print;
mod target;
mod value;

use std::process::ExitCode;

use bytes::Bytes;
use serde::Serialize;
use tenure::fence::{FenceError, FencingToken};
use tenure::{Error, Token};

use crate::args::{Args, FenceCheck, FenceCommand, FenceGet, FenceSeal, FenceWrite};
use crate::exit::{self, Failure};
use crate::output;
use crate::output::plain;
use file::Adoption;
use offered::offered;
use target::Target;

/// The answer as JSON. The fields and their names are a contract: `docs/reference/command/fence.md`.
#[derive(Serialize)]
struct FenceAnswer {
    target: String,
    result: &'static str,
    /// The name of the lease of the mark, and its greatest admitted token; `None` if nothing was admitted yet.
    name: Option<String>,
    token: Option<Token>,
    /// Bytes of the content, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
}

/// What a target has.
#[derive(Debug)]
struct Found {
    /// The greatest admitted token; `None` for content that is not fenced.
    mark: Option<FencingToken>,
    /// Bytes of the content; `None` if there is none yet.
    length: Option<u64>,
    /// Bytes of the complete appends, if it is a log.
    log_length: Option<u64>,
}

/// Writes, reads, seals or checks a fenced resource.
pub(crate) fn fence(args: &Args, command: &FenceCommand) -> Result<ExitCode, Failure> {
    match command {
        FenceCommand::Put(put) => self::put(args, put),
        FenceCommand::Append(append) => self::append(args, append),
        FenceCommand::Get(get) => self::get(args, get),
        FenceCommand::Seal(seal) => self::seal(args, seal),
        FenceCommand::Check(check) => self::check(args, check),
    }
}

fn put(args: &Args, put: &FenceWrite) -> Result<ExitCode, Failure> {
    let target = Target::parse(&put.target)?;
    let token = offered(args, &put.token)?;
    let length = match &target {
        Target::File(path) => file::put(path, &token, adoption(put))?,
        Target::Value(_) if put.adopt => {
            return Err(Failure::usage(format!("--adopt is for files, and {target} is none: leave it out")));
        }
        Target::Value(place) => place.put(args, &token)?,
    };
    done(&target, "put", &token, Some(length), put.json)
}

fn append(args: &Args, append: &FenceWrite) -> Result<ExitCode, Failure> {
    let target = Target::parse(&append.target)?;
    let token = offered(args, &append.token)?;
    let length = match &target {
        Target::File(path) => file::append(path, &token, adoption(append))?,
        Target::Value(_) => {
            let sentence =
                format!("{target} cannot be appended to: append to a file, or put the complete value");
            return Err(Failure::usage(sentence));
        }
    };
    done(&target, "appended", &token, Some(length), append.json)
}

fn seal(args: &Args, seal: &FenceSeal) -> Result<ExitCode, Failure> {
    let target = Target::parse(&seal.target)?;
    let token = offered(args, &seal.token)?;
    match &target {
        Target::File(path) => file::seal(path, &token).map_err(Error::from)?,
        Target::Value(place) => place.seal(args, &token)?,
    }
    done(&target, "sealed", &token, None, seal.json)
}

/// A script that succeeds is silent.
fn done(
    target: &Target,
    result: &'static str,
    token: &FencingToken,
    length: Option<u64>,
    json: bool,
) -> Result<ExitCode, Failure> {
    if json {
        output::answer_json(&FenceAnswer::new(target, result, Some(token), length))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn get(args: &Args, get: &FenceGet) -> Result<ExitCode, Failure> {
    let target = Target::parse(&get.target)?;
    let (found, content) = match &target {
        Target::File(path) => (file::find(path)?, Bytes::new()),
        Target::Value(place) => {
            place.find(args)?.map_or_else(Default::default, |(found, content)| (Some(found), content))
        }
    };
    let length = found.as_ref().and_then(|found| found.length);
    if get.json {
        let result = if length.is_some() { "found" } else { "absent" };
        let mark = found.as_ref().and_then(|found| found.mark.as_ref());
        output::answer_json(&FenceAnswer::new(&target, result, mark, length))?;
    } else if length.is_some() {
        match &target {
            Target::File(path) => print::file(path, found.and_then(|found| found.log_length))?,
            Target::Value(_) => print::bytes(&content)?,
        }
    }
    Ok(if length.is_some() { ExitCode::SUCCESS } else { ExitCode::from(exit::FREE) })
}

/// Compares the token with the mark, as a write would. Changes nothing.
fn check(args: &Args, check: &FenceCheck) -> Result<ExitCode, Failure> {
    let target = Target::parse(&check.target)?;
    let token = offered(args, &check.token)?;
    let found = match &target {
        Target::File(path) => file::find(path)?,
        Target::Value(place) => place.find(args)?.map(|(found, _)| found),
    };
    let mark = found.as_ref().and_then(|found| found.mark.as_ref());
    let unmarked = found.as_ref().filter(|found| found.mark.is_none()).and_then(|found| found.length);
    if let Some(length @ 1..) = unmarked {
        return Err(Failure::new(
            exit::NOT_OURS,
            format!(
                "{target} has {length} bytes and is not fenced: make sure that no earlier holder can still write, and put or \
                 append with --adopt"
            ),
        ));
    }
    match token.check(&target.to_string(), mark) {
        Ok(()) => {}
        Err(FenceError::Stale { .. }) if check.json => {
            output::answer_json(&FenceAnswer::new(&target, "stale", mark, None))?;
            return Ok(ExitCode::from(exit::LOST));
        }
        Err(error) => return Err(Error::from(error).into()),
    }
    if check.json {
        output::answer_json(&FenceAnswer::new(&target, "admitted", mark, None))?;
        return Ok(ExitCode::SUCCESS);
    }
    let seen = match mark {
        Some(mark) => format!("its greatest token is {}", mark.token()),
        None => "it has admitted none yet".to_owned(),
    };
    let (target, number, name) = (target.to_string(), token.token(), token.name().titled());
    let sentence =
        format!("{target} admits token {number} of {name} now: {seen}. Only the write itself proves it");
    output::answer(&(plain(&sentence) + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn adoption(write: &FenceWrite) -> Adoption {
    if write.adopt { Adoption::Adopt } else { Adoption::Refuse }
}

impl FenceAnswer {
    fn new(target: &Target, result: &'static str, mark: Option<&FencingToken>, length: Option<u64>) -> Self {
        Self {
            target: target.to_string(),
            result,
            name: mark.map(|mark| mark.name().to_string()),
            token: mark.map(FencingToken::token),
            length,
        }
    }
}
