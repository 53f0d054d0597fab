//! A port on loopback that stays reserved until it is dropped, whether a server listens on it or not.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that no other test takes, so that a server can stop for a while and restart on it.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// The port is not used for UDP: a bound UDP socket with the same number is a reservation. All processes of the
    /// machine see it, and the kernel releases it however this process ends.
    _reservation: UdpSocket,
}

impl Port {
    pub(crate) fn reserve() -> Self {
        // Each process starts at a different number, so that collisions are rare.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let first = std::process::id().wrapping_mul(31);
        for _ in 0..COUNT {
            let next = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % u32::from(COUNT);
            let number = FIRST + u16::try_from(next).expect("less than COUNT");
            let Ok(reservation) = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)) else { continue };
            if TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Self { number, _reservation: reservation };
            }
        }
        panic!("no port between {FIRST} and {} is free on loopback", FIRST + COUNT);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// Below the ports that kernels assign to outgoing connections (from 32768). Any client could take one of those while
/// its server is down.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
