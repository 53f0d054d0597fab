//! One connection of a client to a database.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::Fault;
use super::dialogue::{ClientPart, DatabaseCommand, Dialogue, ServerPart};
use super::shared::{DueFault, ProxyShared, UnderWay};

/// One connection of a client to a database, and its connection to the server. Both end together, as they would without
/// a proxy.
pub(crate) struct DatabaseConnection {
    client: Half,
    server: Half,
    dialogue: Box<dyn Dialogue>,
    shared: Arc<ProxyShared>,
    number: u64,
    /// Commands without a reply, in order.
    awaited: VecDeque<UnderWay>,
    /// A command that waits before it is forwarded. The commands behind it wait, too.
    held_command: Option<(Instant, Vec<u8>, UnderWay)>,
    /// A reply that waits before it is forwarded. The replies behind it wait, too.
    held_reply: Option<(Instant, Vec<u8>, bool, UnderWay)>,
}

struct Half {
    stream: TcpStream,
    /// Bytes that were read and not yet used.
    buffer: Vec<u8>,
}

/// The end of a connection.
enum End {
    /// One side has closed it.
    Closed,
    /// The proxy cuts the client off: by an orderly close, or by a reset.
    Cut { orderly: bool },
    /// The proxy cuts the client off; after this time the server gets the command, on the same connection.
    DeliverLater { orderly: bool, after: Duration, command: Vec<u8> },
    /// The client receives nothing for this time, then it is cut off.
    Hang { orderly: bool, time: Duration, deliver: Option<Vec<u8>> },
}

impl DatabaseConnection {
    pub(crate) async fn serve(
        client: TcpStream,
        server: SocketAddr,
        dialogue: Box<dyn Dialogue>,
        shared: Arc<ProxyShared>,
        number: u64,
    ) {
        let Ok(server) = TcpStream::connect(server).await else {
            let _ = client.set_zero_linger();
            return;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let connection = Self {
            client: Half { stream: client, buffer: Vec::new() },
            server: Half { stream: server, buffer: Vec::new() },
            dialogue,
            shared,
            number,
            awaited: VecDeque::new(),
            held_command: None,
            held_reply: None,
        };
        connection.run().await;
    }

    async fn run(mut self) {
        match self.forward().await {
            // A command that is late comes also if its client does not wait for it.
            End::Closed => {
                let late = self.held_command.take().map(|(due, command, under_way)| {
                    self.awaited.push_back(under_way);
                    (due, command)
                });
                self.finish(late);
            }
            End::Cut { orderly } => {
                self.cut(orderly);
                self.finish(None);
            }
            End::DeliverLater { orderly, after, command } => {
                self.cut(orderly);
                self.finish(Some((Instant::now() + after, command)));
            }
            End::Hang { orderly, time, deliver } => {
                let due = Instant::now() + time;
                let _ = timeout(time, self.client.closed()).await;
                self.cut(orderly);
                self.finish(deliver.map(|command| (due, command)));
            }
        }
    }

    /// Forwards everything until the connection ends.
    async fn forward(&mut self) -> End {
        loop {
            let command_due = self.held_command.as_ref().map(|(due, ..)| *due);
            let reply_due = self.held_reply.as_ref().map(|(due, ..)| *due);
            let step = tokio::select! {
                () = until(command_due), if command_due.is_some() => self.forward_held_command().await,
                () = until(reply_due), if reply_due.is_some() => self.forward_held_reply().await,
                read = self.client.fill(), if command_due.is_none() => match read {
                    Ok(1..) => Ok(None),
                    Ok(0) | Err(_) => return End::Closed,
                },
                read = self.server.fill(), if reply_due.is_none() => match read {
                    Ok(1..) => Ok(None),
                    Ok(0) | Err(_) => return End::Closed,
                },
            };
            let step = match step {
                Ok(None) => self.handle_all().await,
                other => other,
            };
            match step {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(_) => return End::Closed,
            }
        }
    }

    /// Handles all complete parts that have arrived.
    async fn handle_all(&mut self) -> io::Result<Option<End>> {
        while self.held_command.is_none()
            && let Some(part) = self.dialogue.take_request(&mut self.client.buffer)
        {
            let end = match part {
                ClientPart::Unseen(bytes) => {
                    self.server.send(&bytes).await?;
                    None
                }
                ClientPart::Command(command) => self.command(command).await?,
            };
            if end.is_some() {
                return Ok(end);
            }
        }
        while self.held_reply.is_none()
            && let Some(part) = self.dialogue.take_reply(&mut self.server.buffer, !self.awaited.is_empty())
        {
            let end = match part {
                ServerPart::Unseen(bytes) => {
                    self.client.send(&bytes).await?;
                    None
                }
                ServerPart::Reply { bytes, failed } => self.reply(bytes, failed).await?,
            };
            if end.is_some() {
                return Ok(end);
            }
        }
        Ok(None)
    }

    async fn command(&mut self, command: DatabaseCommand) -> io::Result<Option<End>> {
        let mut under_way = self.shared.arrived(&command, self.number);
        let Some(DueFault { fault, orderly, .. }) = under_way.due() else {
            return self.forward_command(&command.bytes, under_way).await;
        };
        let command = command.bytes;
        match fault {
            Fault::CutBefore => {
                under_way.happened();
                Ok(Some(End::Cut { orderly }))
            }
            Fault::SwallowRequest(time) => {
                under_way.happened();
                Ok(Some(End::Hang { orderly, time, deliver: None }))
            }
            Fault::CutThenDeliver(after) => {
                self.awaited.push_back(under_way);
                Ok(Some(End::DeliverLater { orderly, after, command }))
            }
            Fault::HangThenDeliver(time) => {
                self.awaited.push_back(under_way);
                Ok(Some(End::Hang { orderly, time, deliver: Some(command) }))
            }
            Fault::DelayRequest(time) => {
                self.held_command = Some((Instant::now() + time, command, under_way));
                Ok(None)
            }
            // The others happen to the reply.
            _ => self.forward_command(&command, under_way).await,
        }
    }

    async fn reply(&mut self, bytes: Vec<u8>, failed: bool) -> io::Result<Option<End>> {
        let mut under_way = self.awaited.pop_front().expect("the dialogue knows that a command awaits it");
        under_way.served(if failed { FAILED } else { SUCCEEDED });
        let Some(DueFault { fault, orderly, .. }) = under_way.due() else {
            return self.forward_reply(&bytes, failed, under_way).await;
        };
        under_way.happened();
        match fault {
            Fault::CutAfter => Ok(Some(End::Cut { orderly })),
            Fault::SwallowAnswer(time) => Ok(Some(End::Hang { orderly, time, deliver: None })),
            Fault::CutMidAnswer => {
                self.forward_reply(&bytes[..bytes.len() / 2], failed, under_way).await?;
                // A reset could overtake the bytes that the client must receive.
                Ok(Some(End::Cut { orderly: true }))
            }
            Fault::DelayAnswer(time) => {
                self.held_reply = Some((Instant::now() + time, bytes, failed, under_way));
                Ok(None)
            }
            _ => self.forward_reply(&bytes, failed, under_way).await,
        }
    }

    async fn forward_command(&mut self, bytes: &[u8], under_way: UnderWay) -> io::Result<Option<End>> {
        self.awaited.push_back(under_way);
        self.server.send(bytes).await?;
        Ok(None)
    }

    /// The log and the counts contain the exchange completely before the client gets the reply.
    async fn forward_reply(
        &mut self,
        bytes: &[u8],
        failed: bool,
        under_way: UnderWay,
    ) -> io::Result<Option<End>> {
        under_way.answered(if failed { FAILED } else { SUCCEEDED });
        drop(under_way);
        self.client.send(bytes).await?;
        Ok(None)
    }

    async fn forward_held_command(&mut self) -> io::Result<Option<End>> {
        let Some((_, bytes, under_way)) = self.held_command.take() else { return Ok(None) };
        self.forward_command(&bytes, under_way).await
    }

    async fn forward_held_reply(&mut self) -> io::Result<Option<End>> {
        let Some((_, bytes, failed, under_way)) = self.held_reply.take() else { return Ok(None) };
        self.forward_reply(&bytes, failed, under_way).await
    }

    /// Cuts the client off.
    fn cut(&self, orderly: bool) {
        if !orderly {
            let _ = self.client.stream.set_zero_linger();
        }
    }

    /// Closes the connection of the client. The connection of the server stays open until it has replied to the commands
    /// that it has, so that none is lost with it, and it gets a late command.
    fn finish(self, late: Option<(Instant, Vec<u8>)>) {
        let Self { client, mut server, mut dialogue, mut awaited, .. } = self;
        drop(client);
        if awaited.is_empty() {
            return;
        }
        tokio::spawn(async move {
            if let Some((due, command)) = late {
                sleep_until(due).await;
                if server.send(&command).await.is_err() {
                    return;
                }
            }
            while !awaited.is_empty() {
                if let Some(part) = dialogue.take_reply(&mut server.buffer, true) {
                    if let ServerPart::Reply { failed, .. } = part
                        && let Some(mut under_way) = awaited.pop_front()
                    {
                        under_way.served(if failed { FAILED } else { SUCCEEDED });
                        let late = under_way.due().is_some_and(|due| due.fault.is_late_delivery());
                        if late {
                            under_way.happened();
                        }
                    }
                } else if !matches!(timeout(PATIENCE, server.fill()).await, Ok(Ok(1..))) {
                    return;
                }
            }
        });
    }
}

impl Half {
    async fn fill(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.buffer).await
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Returns when the other side has closed the connection. What it sends is lost.
    async fn closed(&mut self) {
        while matches!(self.fill().await, Ok(1..)) {
            self.buffer.clear();
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// In place of a status: a reply without an error.
const SUCCEEDED: u16 = 200;

/// In place of a status: an error of the server.
const FAILED: u16 = 400;

/// Longest time for a reply that no client waits for.
const PATIENCE: Duration = Duration::from_secs(30);
