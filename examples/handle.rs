//! A lease as text: one program acquires it, others renew and release it, and no process runs in between.
//!
//! ```text
//! cargo run -p tenure --example handle -- acquire > lease
//! cargo run -p tenure --example handle -- renew < lease > next && mv next lease
//! cargo run -p tenure --example handle -- release < lease
//! ```

use std::time::Duration;

use tenure::store::File;
use tenure::{Coordinator, Handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let verb = std::env::args().nth(1).ok_or("usage: handle acquire|renew|release")?;
    let directory = std::env::var("LEASES").unwrap_or("/tmp/tenure-example".into());
    let coordinator = Coordinator::connect(File::open(directory)?).await?;
    if verb == "acquire" {
        let request = coordinator.lease("nightly")?.ttl(Duration::from_secs(60));
        // Any program that has this text can use the lease, for one minute from now. Keep it secret.
        let handle = request.acquire_handle().await?;
        println!("{}", handle.reveal());
        eprintln!("send token {} with every write", handle.token());
        return Ok(());
    }
    let handle: Handle = std::io::read_to_string(std::io::stdin())?.trim().parse()?;
    match verb.as_str() {
        // An error of kind Lost means: stop. Another holder has the lease, or may have it soon.
        "renew" => println!("{}", coordinator.renew(&handle).await?.reveal()),
        "release" => coordinator.release(&handle).await?,
        verb => return Err(format!("unknown verb {verb}: use acquire, renew or release").into()),
    }
    Ok(())
}
