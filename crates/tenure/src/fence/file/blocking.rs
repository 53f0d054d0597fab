use std::path::Path;
use std::sync::Arc;

use tenure_store::StoreError;

use super::super::FenceError;
use crate::Reason;
use crate::host::workers::Workers;

/// Threads that wait for the disk in place of the caller's runtime.
#[derive(Clone, Debug)]
pub(super) struct Blocking(Arc<Workers>);

impl Blocking {
    pub(super) fn new() -> Self {
        Self(Arc::new(Workers::new()))
    }

    /// Runs the call on such a thread. A call that was started runs to its end, even if this future is dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        path: &Path,
        call: impl FnOnce() -> Result<T, FenceError> + Send + 'static,
    ) -> Result<T, FenceError> {
        self.0.run(call).await.unwrap_or_else(|error| {
            let resource = path.display().to_string();
            Err(match error {
                StoreError::Refused(refused) => FenceError::refused(resource, refused.reason, refused.source),
                StoreError::Throttled(throttled) => {
                    FenceError::refused(resource, Reason::Unreachable, throttled)
                }
                StoreError::Unknown(unknown) => FenceError::unknown(resource, unknown.source),
            })
        })
    }
}
