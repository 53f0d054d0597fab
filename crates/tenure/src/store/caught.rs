use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tenure_store::{BoxFuture, BoxStream};

use crate::host::simulation::{Duty, does};

/// A future or stream whose panics become answers, while it is polled and when it is dropped.
///
/// The keeper polls futures of stores. A panic must cost one call, and not every lease of the process.
pub(crate) struct Caught<P>(Option<P>);

/// The message of a panic, to follow the name of its origin: "panicked: …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panicked(String);

impl<P> Caught<P> {
    pub(crate) fn new(inner: P) -> Self {
        Self(Some(inner))
    }
}

impl<T> Future for Caught<BoxFuture<'_, T>> {
    type Output = Result<T, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        if !does(Duty::CatchPanics) {
            return future.as_mut().poll(context).map(Ok);
        }
        match caught(|| future.as_mut().poll(context)) {
            Ok(polled) => polled.map(Ok),
            Err(panicked) => {
                self.end();
                Poll::Ready(Err(panicked))
            }
        }
    }
}

/// Its last item is the panic, if there is one.
impl<T> Stream for Caught<BoxStream<'_, T>> {
    type Item = Result<T, Panicked>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.0 else { return Poll::Ready(None) };
        match caught(|| stream.as_mut().poll_next(context)) {
            Ok(polled) => polled.map(|item| item.map(Ok)),
            Err(panicked) => {
                self.end();
                Poll::Ready(Some(Err(panicked)))
            }
        }
    }
}

impl<P> Caught<P> {
    fn end(&mut self) {
        let inner = self.0.take();
        // Its answer, if any, was delivered already.
        let _ = caught(|| drop(inner));
    }
}

impl<P> Drop for Caught<P> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The return value of foreign code, or the message of its panic.
///
/// The state of this crate stays consistent: foreign code can only break its own.
pub(crate) fn caught<T>(code: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(Panicked::new)
}

impl Panicked {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        let message = match payload.downcast::<String>() {
            Ok(message) => *message,
            Err(payload) => match payload.downcast::<&'static str>() {
                Ok(message) => (*message).to_owned(),
                Err(payload) => {
                    // Foreign code too, which may panic when dropped.
                    std::mem::forget(payload);
                    "without a message".to_owned()
                }
            },
        };
        Self(message)
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}
