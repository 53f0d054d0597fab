use std::sync::Arc;
use std::time::Duration;

use tenure_store::{BoxFuture, Key, Store};

use super::Broken;
use super::fault::Fault;
use super::pause::pause;
use crate::{Harness, Supported};

/// Time passes on the store's own clock, so the suite takes no longer than its calls.
impl Harness for Broken {
    fn name(&self) -> String {
        self.to_string()
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Arc::new(self.clone()) as Arc<dyn Store> })
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.advance(wait);
            pause().await;
        })
    }

    fn restart(&self) -> BoxFuture<'_, Supported> {
        self.engine.restart();
        done()
    }

    fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
        self.engine.fault_next_put(Fault::LosesAnswer);
        done()
    }

    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        self.engine.fault_next_put(Fault::LosesRequest);
        done()
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        self.engine.delete(key);
        done()
    }

    fn snapshot(&self) -> BoxFuture<'_, Supported> {
        self.engine.snapshot();
        done()
    }

    fn restore(&self) -> BoxFuture<'_, Supported> {
        self.engine.restore();
        done()
    }
}

fn done() -> BoxFuture<'static, Supported> {
    Box::pin(async { Supported::Yes })
}
