//! The accident that a token prevents: a holder is paused after it has checked its lease and before it writes.
//!
//! It plays twice in one process, with a ledger that checks no token and with one that does. `tenure demo` shows the same
//! with two processes and SIGSTOP.
//!
//! ```sh
//! cargo run -p tenure --example fencing
//! ```

use std::sync::Mutex;
use std::time::Duration;

use tenure::fence::{Fence, FenceError, FencingToken, Seal};
use tenure::store::Memory;
use tenure::{Coordinator, Error, ErrorKind};
use tokio::sync::Notify;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    println!("without a fence:");
    accident(&Ledger { checks: false, ..Ledger::default() }).await?;
    println!("with a fence:");
    accident(&Ledger { checks: true, ..Ledger::default() }).await
}

async fn accident(ledger: &Ledger) -> Result<(), Error> {
    let store = Memory::new();
    let a = Coordinator::connect(store.clone()).await?;
    let b = Coordinator::connect(store).await?;
    // A manual lease is renewed only on request. A paused process renews nothing, either.
    let lease = a.lease("settlement")?.ttl(Duration::from_secs(1)).manual().acquire().await?;
    let paused = PausedBeforeWrite { ledger, end: Notify::new() };

    let late = async {
        // It checks the lease, which is held. The pause is after that check.
        match lease.fenced(&paused).write("payment 3").await {
            Ok(()) => println!("  A wrote payment 3, too late"),
            Err(error) if error.kind() == ErrorKind::Fenced => println!("  {error}"),
            Err(error) => return Err(error),
        }
        let lost = lease.check().expect_err("its ttl has passed");
        println!("  A stops: its check reports {:?}", lost.kind());
        Ok(())
    };
    let takeover = async {
        let next = b.lease("settlement")?.acquire().await?; // waits for the ttl of A
        println!("  B took over while A was paused");
        // The first act of a new holder: from now on, the ledger refuses every write of A.
        next.fenced(ledger).seal().await?;
        next.fenced(ledger).write("payment 3").await?;
        println!("  B wrote payment 3");
        paused.end.notify_one();
        next.release().await
    };
    tokio::try_join!(late, takeover)?;
    println!("  the ledger has {:?}", ledger.content.lock().unwrap().rows);
    Ok(())
}

/// A resource of your own: it remembers the greatest token that it has admitted.
#[derive(Default)]
struct Ledger {
    checks: bool,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    mark: Option<FencingToken>,
    rows: Vec<&'static str>,
}

impl Ledger {
    /// Check, mark and write are one atomic step: under one lock, without an await.
    fn admit(&self, token: &FencingToken, row: Option<&'static str>) -> Result<(), FenceError> {
        let mut content = self.content.lock().unwrap();
        if self.checks {
            token.check("the ledger", content.mark.as_ref())?;
        }
        content.mark = Some(token.clone());
        content.rows.extend(row);
        Ok(())
    }
}

impl Fence for Ledger {
    type Write<'w> = &'static str;
    type Written = ();

    async fn write(&self, token: &FencingToken, row: &'static str) -> Result<(), FenceError> {
        self.admit(token, Some(row))
    }
}

impl Seal for Ledger {
    async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        self.admit(token, None)
    }
}

/// The same ledger, for a writer that is paused just before its write arrives.
struct PausedBeforeWrite<'a> {
    ledger: &'a Ledger,
    end: Notify,
}

impl Fence for PausedBeforeWrite<'_> {
    type Write<'w>
        = &'static str
    where
        Self: 'w;
    type Written = ();

    async fn write<'w>(&'w self, token: &'w FencingToken, row: &'static str) -> Result<(), FenceError> {
        println!("  A has checked its lease, and is paused before it writes payment 3");
        self.end.notified().await;
        self.ledger.write(token, row).await
    }
}
