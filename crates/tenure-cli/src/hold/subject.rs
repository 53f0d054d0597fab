use std::collections::HashSet;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::parent_id;

use nix::sys::signal::Signal;
use rustix::process::Signal as Sent;

use super::locked_descriptor::LockedDescriptor;
use super::openers;
use super::signal_name::name_of;
use super::watched_process::{self, WatchedProcess};
use crate::args::Hold;
use crate::exit::Failure;

/// The part of the script that the lease is bound to.
#[derive(Debug)]
pub(super) enum Subject {
    /// A descriptor: the lease is released when the last process has closed it.
    Descriptor(LockedDescriptor),
    /// A process: when it ends, its children may go on, so the lease lapses.
    Process(WatchedProcess),
}

impl Subject {
    /// The subject of the command line. Nothing is granted if it is wrong.
    pub(super) fn of(hold: &Hold) -> Result<Self, Failure> {
        match (hold.fd, hold.pid) {
            (Some(number), _) => LockedDescriptor::lock(number).map(Self::Descriptor),
            (None, Some(number)) => WatchedProcess::open(number).map(Self::Process),
            (None, None) => Err(Failure::usage(format!(
                "hold needs to know how long the script lives: open a file in it and pass its descriptor, as in exec \
                 9>>/var/lock/backup.lock; token=$(tenure hold {} --fd 9); or name a process with --pid",
                hold.name
            ))),
        }
    }

    /// The process that the holder is named after.
    pub(super) fn process(&self) -> u32 {
        match self {
            Self::Descriptor(_) => parent_id(),
            Self::Process(process) => process.number().unsigned_abs(),
        }
    }

    /// Leaves the script as it was: the lease is not held.
    pub(super) fn leave(&self) {
        if let Self::Descriptor(descriptor) = self {
            descriptor.unlock();
        }
    }

    /// Closes what belongs to the script, and returns the descriptors that the keeper needs.
    pub(super) fn detach(&mut self) -> HashSet<RawFd> {
        match self {
            Self::Descriptor(descriptor) => descriptor.detach(),
            Self::Process(process) => HashSet::from([process.as_raw_fd()]),
        }
    }

    /// A descriptor that becomes readable when the subject has ended.
    pub(super) fn ended(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Descriptor(descriptor) => descriptor.closed(),
            Self::Process(process) => process.ended(),
        }
    }

    /// True if no process of the script can act under the lease once the subject has ended.
    pub(super) fn is_whole_script(&self) -> bool {
        matches!(self, Self::Descriptor(_))
    }

    /// Failure of a keeper whose subject ended before the grant.
    pub(super) fn ended_early(&self) -> Failure {
        match self {
            Self::Descriptor(_) => Failure::silent(0),
            Self::Process(process) => watched_process::gone(process.number()),
        }
    }

    /// Sends the signal to all processes of the subject, and returns how many got it.
    pub(super) fn signal(&self, signal: Signal) -> usize {
        let Some(sent) = Sent::from_named_raw(signal as i32) else { return 0 };
        match self {
            Self::Descriptor(descriptor) => openers::signal(descriptor.byte(), sent),
            Self::Process(process) => usize::from(process.signal(sent)),
        }
    }

    /// The processes that got a signal, in words.
    pub(super) fn signalled_words(&self, signal: Signal, count: usize) -> String {
        let name = name_of(signal);
        match self {
            Self::Process(process) if count == 0 => {
                format!("{name} could not be sent to process {}", process.number())
            }
            Self::Process(process) => format!("{name} was sent to process {}", process.number()),
            Self::Descriptor(descriptor) => {
                let processes = if count == 1 { "process" } else { "processes" };
                format!("{name} was sent to {count} {processes} with descriptor {}", descriptor.number())
            }
        }
    }
}
