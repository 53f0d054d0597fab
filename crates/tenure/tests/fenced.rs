//! Writes under a lease to a resource that checks the token.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::fence::{Fence, FenceError, FencingToken, Seal};
use tenure::store::Memory;
use tenure::{Coordinator, ErrorKind, Recorder};

use support::refusals::Refusals;

/// A value in this process, with the greatest token that wrote it.
#[derive(Debug, Default)]
struct Value(Mutex<(Option<FencingToken>, Vec<&'static str>)>);

impl Fence for Value {
    type Write<'w> = &'static str;
    type Written = usize;

    async fn write(&self, token: &FencingToken, text: &'static str) -> Result<usize, FenceError> {
        let mut value = self.0.lock().unwrap();
        token.check("the value", value.0.as_ref())?;
        value.0 = Some(token.clone());
        value.1.push(text);
        Ok(value.1.len())
    }
}

impl Seal for Value {
    async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        let mut value = self.0.lock().unwrap();
        token.check("the value", value.0.as_ref())?;
        value.0 = Some(token.clone());
        Ok(())
    }
}

#[tokio::test]
async fn a_refused_write_is_told_with_the_resource_the_token_and_the_highest_token() {
    let refusals = Arc::new(Refusals::default());
    let recorder: Arc<dyn Recorder> = refusals.clone();
    let tenure = Coordinator::builder().recorder(recorder).connect(Memory::new()).await.unwrap();
    let lease = tenure.lease("billing/nightly").unwrap().acquire().await.unwrap();
    let value = Value::default();
    assert_eq!(lease.fenced(&value).write("first").await.unwrap(), 1);
    assert_eq!(lease.fenced(&value).write("the same holder again").await.unwrap(), 2);

    let newer = FencingToken::new(lease.key().clone(), lease.token().next().unwrap()).unwrap();
    value.seal(&newer).await.unwrap();
    for refused in [
        lease.fenced(&value).write("late").await.unwrap_err(),
        lease.fenced(&value).seal().await.unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Fenced);
        let words = refused.to_string();
        for part in ["the value", "billing/nightly", &lease.token().to_string(), &newer.token().to_string()] {
            assert!(words.contains(part), "{words}");
        }
        let source =
            std::error::Error::source(&refused).and_then(|source| source.downcast_ref::<FenceError>());
        assert!(source.is_some_and(FenceError::is_stale));
    }
    assert_eq!(value.0.lock().unwrap().1, ["first", "the same holder again"]);
    // The recorder has its own thread.
    tenure_testkit::wait_for(Duration::from_secs(10), Duration::from_millis(2), || {
        (refusals.0.lock().unwrap().len() == 2).then_some(())
    });
    let told = ("the value".to_owned(), Some(lease.token()), newer.token());
    assert_eq!(*refusals.0.lock().unwrap(), [told.clone(), told]);
}

#[tokio::test]
async fn a_lost_lease_sends_nothing_to_the_resource() {
    let tenure = Coordinator::connect(Memory::new()).await.unwrap();
    let lease = tenure.lease("billing").unwrap().acquire().await.unwrap();
    lease.release().await.unwrap();
    let value = Value::default();
    assert_eq!(lease.fenced(&value).write("late").await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(lease.fenced(&value).seal().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(value.0.lock().unwrap().0.is_none());
}

#[test]
fn a_program_without_an_executor_writes_and_seals_under_its_lease() {
    let tenure = tenure::blocking::Coordinator::connect(Memory::new()).unwrap();
    let lease = tenure.lease("billing").unwrap().acquire().unwrap();
    let value = Value::default();
    lease.fenced(&value).seal().unwrap();
    assert_eq!(lease.fenced(&value).write("first").unwrap(), 1);
    assert_eq!(value.0.lock().unwrap().0.as_ref(), Some(lease.fencing_token()));
}
