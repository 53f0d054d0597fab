use std::sync::Arc;
use std::time::Duration;

use tenure::clock::Clock;
use tenure_store::{BoxFuture, Key, Store};

use super::fault::Fault;
use super::{Broken, Lie};
use crate::{Harness, Supported};

/// Time passes only when the suite pauses, so the suite takes no longer than its calls.
impl Harness for Broken {
    fn name(&self) -> String {
        self.to_string()
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Arc::new(self.clone()) as Arc<dyn Store> })
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.time.pass(wait))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        match self.lie() {
            Some(Lie::StoppedClock) => self.time.machine_on(self.stopped.clone()),
            _ => self.time.machine(),
        }
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
