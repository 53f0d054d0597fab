//! Standard input of a fenced write.

use std::io::{self, StdinLock};

use rustix::fs::{OFlags, fcntl_getfl, fstat, major, minor};

use crate::exit::Failure;

/// Standard input; an error if it is closed.
///
/// A program that starts with a closed standard input gets `/dev/null` in its place, open for reading and writing. To read
/// it as empty content would empty the target.
pub(super) fn open_input() -> Result<StdinLock<'static>, Failure> {
    let input = io::stdin().lock();
    let is_null = fstat(&input).is_ok_and(|status| (major(status.st_rdev), minor(status.st_rdev)) == (1, 3));
    if is_null && fcntl_getfl(&input).is_ok_and(|flags| flags.contains(OFlags::RDWR)) {
        let sentence = "standard input is closed, and the content is read from it: add <FILE, or </dev/null for no content";
        return Err(Failure::usage(sentence.to_owned()));
    }
    Ok(input)
}
