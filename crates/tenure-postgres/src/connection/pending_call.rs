use std::sync::Arc;

use super::open_connection::OpenConnection;

/// A call on a connection. If it is dropped before it is answered, no other call uses the connection.
pub(crate) struct PendingCall {
    connection: Arc<OpenConnection>,
    may_wait: bool,
    is_answered: bool,
    unreplicated: u64,
}

impl PendingCall {
    pub(super) fn on(connection: &Arc<OpenConnection>, may_wait: bool) -> Self {
        connection.begin(may_wait);
        let unreplicated = connection.notices().unreplicated();
        Self { connection: Arc::clone(connection), may_wait, is_answered: false, unreplicated }
    }

    pub(crate) fn connection(&self) -> &OpenConnection {
        &self.connection
    }

    /// Ends the call with an answer. False if a commit since its beginning did not wait for the synchronous standbys:
    /// an administrator cancelled the wait, and the server reported success nevertheless.
    pub(crate) fn answered(&mut self) -> bool {
        self.is_answered = true;
        self.connection.notices().unreplicated() == self.unreplicated
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.connection.end(self.may_wait, self.is_answered);
    }
}
