//! The number of the server process that the server announced when the connection began.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Client;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// The number of the process, as the server named it at the beginning of the connection. A pooler names a number of its
/// own, because it cannot know which of its connections will carry a statement.
///
/// The client library keeps the number for itself and puts it into a request to cancel a statement. So such a request is
/// written here, into memory, and never sent.
pub(super) async fn announced(client: &Client) -> Option<i32> {
    let written = Captured::default();
    client.cancel_token().cancel_query_raw(written.clone(), Captured::default()).await.ok()?;
    let bytes = written.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let at = bytes.windows(4).rposition(|four| four == CANCEL_REQUEST)? + 4;
    Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The code of a request to cancel a statement.
const CANCEL_REQUEST: [u8; 4] = 80_877_102_u32.to_be_bytes();

/// A stream that keeps what is written, and offers TLS that changes nothing.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl AsyncRead for Captured {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // The answer of a server that accepts TLS.
        buf.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Captured {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for Captured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl TlsConnect<Captured> for Captured {
    type Stream = Captured;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Captured>>;

    fn connect(self, stream: Captured) -> Self::Future {
        std::future::ready(Ok(stream))
    }
}
