//! The process that the script waits for.

use nix::sys::signal::SigSet;
use rustix::process::{Pid, WaitOptions, waitpid};
use tenure::Key;

use super::keeper_message::KeeperMessage;
use crate::exit::Failure;
use crate::output;
use crate::run::link::{Link, Received};

/// Message of the foreground process: the answer is written.
pub(super) const PRINTED: &[u8] = b"P";

/// Waits for the grant, and prints the answer that the keeper sends.
///
/// A signal ends this process in its usual way, until it prints the token. The keeper then sees the end of the link, and
/// releases what it was granted. From then on, signals wait: a script that was told of a failure would not expect a lease.
pub(super) fn wait(keeper: Pid, link: Link, key: &Key) -> Result<(), Failure> {
    while let Received::Message(message, _) = link.wait() {
        match KeeperMessage::from_bytes(&message) {
            Some(KeeperMessage::Granted { answer }) => {
                let _ = SigSet::all().thread_block();
                if let Err(failure) = output::deliver(&answer) {
                    // The script did not get the token: the keeper releases the lease at the end of the link.
                    drop(link);
                    let _ = waitpid(Some(keeper), WaitOptions::empty());
                    return Err(failure);
                }
                // If the keeper has exited, the end of the link says so.
                let _ = link.send(PRINTED, &[]);
            }
            Some(KeeperMessage::Kept) => return Ok(()),
            None => {}
        }
    }
    // A keeper that exits has printed the reason.
    let ended = waitpid(Some(keeper), WaitOptions::empty()).ok().flatten();
    let code = ended.and_then(|(_, status)| status.exit_status()).and_then(|code| u8::try_from(code).ok());
    match code.filter(|code| *code != 0) {
        Some(code) => Err(Failure::silent(code)),
        None => Err(Failure::unavailable(format!(
            "the keeper of lease {key} was killed before it held the lease: find out what killed it, such as a lack of \
             memory, and try again"
        ))),
    }
}
