use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;

use super::{Done, number, text};
use tenure_testkit::sleep_ms;

use crate::raw;
use crate::stamps::{Stamps, boot_time};

/// Stamps every 2 ms for `millis`. Only KILL stops it earlier. The label `-` stands for the token of the lease.
pub(super) fn act(directory: &str, label: &str, millis: &str) -> Done {
    SigSet::all().thread_block().map_err(text)?;
    let token = std::env::var("TENURE_TOKEN").unwrap_or_default();
    let label = if label == "-" { &token } else { label };
    let mut stamps = Stamps::create(Path::new(directory), label).map_err(text)?;
    let limit = Duration::from_millis(number(millis)?);
    let began = Instant::now();
    loop {
        stamps.add(boot_time()).map_err(text)?;
        if began.elapsed() >= limit {
            return Ok(());
        }
        sleep_ms(2);
    }
}

/// Does the same in a second thread, after the first thread has exited.
pub(super) fn leaderless(directory: &str, label: &str, millis: &str) -> Done {
    let (directory, label, millis) = (directory.to_owned(), label.to_owned(), millis.to_owned());
    SigSet::all().thread_block().map_err(text)?;
    std::thread::spawn(move || {
        let _ = act(&directory, &label, &millis);
        std::process::exit(0);
    });
    raw::exit_thread()
}
