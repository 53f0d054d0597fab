use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use tokio::io::unix::AsyncFd;

use crate::ready::when_readable;

/// One end of a connection between two of our processes. Messages stay complete and may carry descriptors. The end of
/// the other process is the end of the stream.
#[derive(Debug)]
pub(crate) struct Link(OwnedFd);

/// Result of a receive.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Vec<u8>, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other end is closed.
    End,
}

impl Link {
    /// Both ends. Neither survives an exec.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        Ok((Self(a), Self(b)))
    }

    /// Sends without waiting: a process that does not read until the kernel's buffer is full counts as dead.
    pub(crate) fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        // NOSIGNAL: a dead other end is an error here, not a signal.
        rustix::net::sendmsg(&self.0, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the next message, or for the end.
    pub(crate) fn wait(&self) -> Received {
        loop {
            match self.receive() {
                Received::Nothing => {}
                received => return received,
            }
            let _ = poll(&mut [PollFd::new(self, PollFlags::IN)], None);
        }
    }

    /// Receives without waiting. Every error of the connection counts as its end.
    pub(crate) fn receive(&self) -> Received {
        // The length first: memory for the longest message would cost a forked process more than the call.
        let peek = || rustix::net::recv(&self.0, &mut [0; 0], RecvFlags::PEEK | RecvFlags::TRUNC);
        let length = match settled(peek) {
            Ok((_, length)) if length > 0 => length,
            Err(Errno::AGAIN) => return Received::Nothing,
            Ok(_) | Err(_) => return Received::End,
        };
        let mut message = vec![0; length];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut message)];
        let receive =
            || rustix::net::recvmsg(&self.0, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).map(drop);
        if settled(receive).is_err() {
            return Received::End;
        }
        let descriptors = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
            _ => Vec::new(),
        });
        let descriptors = descriptors.collect();
        Received::Message(message, descriptors)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Link {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// One end of a link, watched by a runtime.
#[derive(Debug)]
pub(crate) struct LinkListener(AsyncFd<Link>);

impl LinkListener {
    pub(crate) fn new(link: Link) -> io::Result<Self> {
        when_readable(link).map(Self)
    }

    pub(crate) fn link(&self) -> &Link {
        self.0.get_ref()
    }

    /// The next message with its descriptors; `None` at the end.
    pub(crate) async fn next(&self) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        loop {
            let mut ready = self.0.readable().await.ok()?;
            match self.link().receive() {
                Received::Nothing => ready.clear_ready(),
                Received::Message(message, descriptors) => return Some((message, descriptors)),
                Received::End => return None,
            }
        }
    }
}

/// Calls again while the outcome is not about the next message. If the other end closed without reading everything, the
/// kernel reports that once, before the messages that it had sent.
fn settled<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR | Errno::CONNRESET) => {}
            outcome => return outcome,
        }
    }
}

/// Maximum number of descriptors of a message.
const DESCRIPTORS_MAX: usize = 1;

#[cfg(test)]
mod tests {
    use rustix::event::Timespec;

    use super::*;

    #[test]
    fn a_long_message_and_a_short_one_arrive_complete_and_in_order() {
        let (ours, theirs) = Link::pair().unwrap();
        assert!(matches!(ours.receive(), Received::Nothing));
        let long = [7; 100_000];
        theirs.send(&long, &[ours.as_fd()]).unwrap();
        theirs.send(b"short", &[]).unwrap();
        assert!(
            matches!(ours.receive(), Received::Message(message, passed) if message == long && passed.len() == 1)
        );
        assert!(
            matches!(ours.receive(), Received::Message(message, passed) if message == b"short" && passed.is_empty())
        );
        assert!(matches!(ours.receive(), Received::Nothing));
    }

    #[test]
    fn the_last_message_is_received_although_the_other_end_had_stopped_reading() {
        let (ours, theirs) = Link::pair().unwrap();
        ours.send(b"until", &[]).unwrap();
        theirs.send(b"ended", &[]).unwrap();
        drop(theirs);
        assert!(matches!(ours.receive(), Received::Message(message, _) if message == b"ended"));
        // A process that another test starts has a copy of the other end until its exec: the end may be late.
        let readable = &mut [PollFd::new(&ours, PollFlags::IN)];
        poll(readable, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })).unwrap();
        assert!(matches!(ours.receive(), Received::End));
        assert!(matches!(ours.receive(), Received::End));
    }
}
