use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A network link on loopback that delays every byte by half a round trip in each direction.
///
/// On loopback, the threads of a client take longer than the network. Behind such a link, a duration is a number of
/// round trips.
#[derive(Debug)]
pub struct SlowLink {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl SlowLink {
    /// Starts a link to this server. The link ends when this is dropped.
    pub async fn to(server: SocketAddr, round_trip: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(server).await else { continue };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).expect("a socket takes the option");
                }
                let ((from, back), (to_read, to_write)) = (client.into_split(), server.into_split());
                tokio::spawn(delay(from, to_write, round_trip / 2));
                tokio::spawn(delay(to_read, back, round_trip / 2));
            }
        });
        Self { address, task }
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Forwards bytes in one direction, each after the delay.
async fn delay(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut buffer = vec![0; 65536];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            if sender.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}
