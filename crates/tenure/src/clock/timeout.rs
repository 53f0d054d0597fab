use std::time::Duration;

use crate::clock::Clock;
use crate::{Error, ErrorKind};

/// The outcome of `future`, or an error if it takes longer than `limit`: a store that hangs must not hang its users.
pub(crate) async fn timeout<T>(
    clock: &dyn Clock,
    limit: Duration,
    what: &str,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let late = clock.sleep_until(clock.now() + limit);
    tokio::select! {
        biased;
        outcome = future => outcome,
        () = late => {
            let advice = "see whether the store runs and can be reached";
            Err(Error::new(ErrorKind::Unavailable, format!("{what} took longer than {limit:?}: {advice}")))
        }
    }
}
