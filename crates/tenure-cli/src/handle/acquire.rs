use std::process::ExitCode;

use tenure::{Handle, Holder, Key, Timing};

use super::file::HandleFile;
use super::{HandleAnswer, check_deadline};
use crate::acquire::Acquisition;
use crate::args::{Acquire, Args};
use crate::exit::{self, Failure};
use crate::keeper_reports::KeeperReports;
use crate::outlived_commands::OutlivedCommands;
use crate::progress::{ProgressOutput, Verbosity};
use crate::published_process::calling_script;
use crate::signals::{self, Blocked};
use crate::store_trouble::StoreTrouble;
use crate::wait_limit::WaitLimit;
use crate::{output, store};

/// Acquires a lease, and prints its handle.
pub(crate) fn acquire(args: &Args, acquire: &Acquire) -> Result<ExitCode, Failure> {
    let wait = WaitLimit::from_now(acquire.waiting.limit());
    let key = Key::parse(&acquire.name)?;
    let holder = match &acquire.holder {
        Some(holder) => Holder::new(holder),
        // This process exits before the work under the lease starts; the script continues.
        None => tenure::process_holder(std::os::unix::process::parent_id()),
    };
    let holder = holder.map_err(tenure::Error::from)?;
    let timing = Timing::new(acquire.ttl).map_err(|error| Failure::misconfigured(error.to_string()))?;
    let file = acquire.file.as_deref().map(HandleFile::at);
    // Before the first thread, which inherits the mask.
    let blocked = Blocked::now().map_err(signals::no_signals)?;
    store::block_on(async {
        let signals = blocked.take().map_err(signals::no_signals)?;
        let opened = store::open(args)?;
        opened.check_write_rate(&timing)?;
        let url = opened.url.clone();
        if let Some(file) = &file {
            file.make_room()?;
        }
        let reports = KeeperReports::new();
        let builder =
            store::coordinator(args).recorder(reports.clone()).process(calling_script()).holder(holder);
        let verbosity = Verbosity::of(acquire.quiet, false);
        let progress = &ProgressOutput::new(verbosity, acquire.json, key.as_str(), &url);
        let coordinator = store::connect_while_waiting(builder, opened, &wait, &signals, progress).await?;
        let acquisition = Acquisition {
            coordinator: &coordinator,
            key: &key,
            url: &url,
            progress,
            wait,
            taking: acquire.taking.as_ref(),
            quiet: acquire.quiet,
            conflict: exit::HELD,
            outlived: OutlivedCommands {
                coordinator: &coordinator,
                url: &url,
                progress,
                reports: &reports.outlived,
                limit: acquire.orphan_wait,
            },
            trouble: StoreTrouble { progress, errors: &reports.errors },
        };
        let request = coordinator.lease(key.as_str())?.timing(timing).heed_tree(acquire.orphan_wait);
        let (handle, _) = tokio::select! {
            got = acquisition.acquire(request, async |request| request.acquire_handle().await) => got?,
            signal = signals.ended() => {
                // Releases a lease that may have been granted in between.
                let _ = coordinator.shutdown().await;
                return Ok(ExitCode::from(128 + signal as u8));
            }
        };
        match hand_out(&handle, file.as_ref(), acquire.json).and_then(|()| check_deadline(&handle)) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(failure) => {
                // The script did not get the handle, so it does not act under the lease.
                let _ = coordinator.release(&handle).await;
                if let Some(file) = &file {
                    file.remove(&handle);
                }
                Err(failure)
            }
        }
    })
}

fn hand_out(handle: &Handle, file: Option<&HandleFile>, json: bool) -> Result<(), Failure> {
    let answer = HandleAnswer::of(handle).with_time_left(handle);
    match file {
        Some(file) => {
            file.make_room()?.write(handle)?;
            if json { output::answer_json(&answer) } else { output::answer(&format!("{}\n", handle.token())) }
        }
        None if json => output::deliver_json(&answer.with_handle(handle)),
        None => output::deliver(&format!("{}\n", handle.reveal())),
    }
}
