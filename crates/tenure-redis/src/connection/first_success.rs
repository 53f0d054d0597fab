use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::task::within;

/// The result of the first attempt that succeeds, or the error of the first one in the order. `None` if there is no
/// attempt.
///
/// Each attempt begins when the one before it has failed, or has been silent for a while: then both continue. An address
/// that drops packets does not answer at all, and must not use up the time of the others.
pub(super) async fn first_success<T, E>(
    attempts: impl IntoIterator<Item = impl Future<Output = Result<T, E>>>,
) -> Option<Result<T, E>> {
    let mut remaining = attempts.into_iter().enumerate();
    let mut running = FuturesUnordered::new();
    let mut errors = BTreeMap::new();
    loop {
        if let Some((place, attempt)) = remaining.next() {
            running.push(async move { (place, attempt.await) });
        }
        match within(HEAD_START, running.next()).await {
            Some(Some((_, Ok(value)))) => return Some(Ok(value)),
            Some(Some((place, Err(error)))) => drop(errors.insert(place, error)),
            Some(None) => return errors.pop_first().map(|(_, error)| Err(error)),
            None => {}
        }
    }
}

/// Silence of an address after which another attempt begins beside it.
const HEAD_START: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::future::Either;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn a_silent_attempt_does_not_delay_the_others_for_ever() {
        let attempts =
            [Either::Left(pending()), Either::Right(ready(Err("refused"))), Either::Right(ready(Ok(3)))];
        assert_eq!(block_on(first_success(attempts)), Some(Ok(3)));
    }

    #[test]
    fn the_error_is_that_of_the_first_attempt_in_the_order() {
        let slowly = async {
            tokio::task::yield_now().await;
            Err::<(), _>("first")
        };
        let attempts = [Either::Left(slowly), Either::Right(ready(Err("second")))];
        assert_eq!(block_on(first_success(attempts)), Some(Err("first")));
        assert_eq!(block_on(first_success(std::iter::empty::<std::future::Ready<Result<(), ()>>>())), None);
    }
}
