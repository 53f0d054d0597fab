use std::future::poll_fn;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{AsyncMessage, Client, Connection, Notification, Socket};

use super::inspection::Inspection;
use super::notices::ServerNotices;
use super::task::AbortOnDrop;
use crate::words;

/// An open connection, with everything that is known about its server.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(super) inspection: Inspection,
    pub(super) notices: Arc<ServerNotices>,
    /// Moves the bytes.
    pub(super) driver: JoinHandle<()>,
    pub(crate) is_pooled: bool,
}

/// Receives the notifications of a connection.
pub(crate) type OnNotification = Arc<dyn Fn(Notification) + Send + Sync>;

impl Connected {
    /// Ends the connection when the guard is dropped.
    pub(crate) fn abort_on_drop(&self) -> AbortOnDrop {
        AbortOnDrop::new(self.driver.abort_handle())
    }

    /// Waits until the connection ends. The client is dropped then, or with the future.
    pub(crate) async fn ended(self) {
        let Self { client: _client, driver, .. } = self;
        // A driver that panicked has ended, too.
        let _ = driver.await;
    }
}

/// Moves the bytes of a connection until it ends.
pub(super) async fn drive<T: TlsStream + Unpin>(
    mut connection: Connection<Socket, T>,
    notices: Arc<ServerNotices>,
    on_notification: OnNotification,
) {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            // The commit was not replicated, although it is reported as a success. The name of the server's own function is
            // not translated, as its message is.
            Some(Ok(AsyncMessage::Notice(notice))) if notice.routine() == Some("SyncRepWaitForLSN") => {
                notices.count_unreplicated();
            }
            Some(Ok(AsyncMessage::Notification(notification))) => on_notification(notification),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                notices.set_end(words::chain(&error));
                break;
            }
            None => break,
        }
    }
}
