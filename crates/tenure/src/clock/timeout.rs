use std::time::Duration;

use crate::clock::Clock;
use crate::{Error, ErrorKind};

/// The outcome of `future`; `None` if it takes longer than `limit`.
pub(crate) async fn timeout<T>(
    clock: &dyn Clock,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let late = clock.sleep_until(clock.now() + limit);
    tokio::select! {
        biased;
        outcome = future => Some(outcome),
        () = late => None,
    }
}

/// The outcome of a call; an error if it takes longer than `limit`, so that a hanging store does not hang its users.
pub(crate) async fn call_timeout<T>(
    clock: &dyn Clock,
    limit: Duration,
    what: &str,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(clock, limit, call).await.unwrap_or_else(|| {
        let advice = "check that the store runs and can be reached";
        Err(Error::new(ErrorKind::Unavailable, format!("{what} took longer than {limit:?}: {advice}")))
    })
}
