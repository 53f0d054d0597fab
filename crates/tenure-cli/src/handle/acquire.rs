use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tenure::{Handle, Holder, Key, Timing};

use super::file::HandleFile;
use super::{HandleAnswer, check_deadline};
use crate::acquire::Acquisition;
use crate::args::{Acquire, Args, Taking};
use crate::exit::{self, Failure};
use crate::outlived_reports::OutlivedReports;
use crate::progress::ProgressOutput;
use crate::signals::{self, Blocked};
use crate::{output, store};

/// Gets a lease, and hands out its handle.
pub(crate) fn acquire(args: &Args, acquire: &Acquire) -> Result<ExitCode, Failure> {
    let Acquire { name, ttl, waiting, orphan_wait, holder, file, quiet, json } = acquire;
    let request = HandleRequest {
        name,
        ttl: *ttl,
        wait: waiting.limit(),
        orphan_wait: *orphan_wait,
        holder: holder.as_deref(),
        file: file.as_ref(),
        taking: None,
        quiet: *quiet,
        json: *json,
    };
    request.run(args)
}

/// A lease that somebody gets the handle of.
#[derive(Debug)]
pub(super) struct HandleRequest<'a> {
    pub(super) name: &'a str,
    pub(super) ttl: Duration,
    pub(super) wait: Option<Duration>,
    pub(super) orphan_wait: Option<Duration>,
    pub(super) holder: Option<&'a str>,
    pub(super) file: Option<&'a PathBuf>,
    pub(super) taking: Option<&'a Taking>,
    pub(super) quiet: bool,
    pub(super) json: bool,
}

impl HandleRequest<'_> {
    pub(super) fn run(&self, args: &Args) -> Result<ExitCode, Failure> {
        let key = Key::parse(self.name)?;
        let holder = match self.holder {
            Some(holder) => Holder::new(holder),
            // This process ends before anything is done under the lease; the script goes on.
            None => tenure::process_holder(std::os::unix::process::parent_id()),
        };
        let holder = holder.map_err(tenure::Error::from)?;
        let timing = Timing::new(self.ttl).map_err(|error| Failure::misconfigured(error.to_string()))?;
        let file = self.file.map(|path| HandleFile::at(path));
        // Before the first thread, which inherits it.
        let blocked = Blocked::now().map_err(signals::no_signals)?;
        store::block_on(async {
            let signals = blocked.take().map_err(signals::no_signals)?;
            let opened = store::open(args)?;
            opened.check_write_rate(&timing)?;
            let store::OpenedStore { store, url } = opened;
            if let Some(file) = &file {
                file.make_room()?;
            }
            let outlived_reports = OutlivedReports::new();
            let builder = store::coordinator(args).recorder(outlived_reports.clone());
            let coordinator = builder.holder(holder).connect(store).await?;
            let acquisition = Acquisition {
                coordinator: &coordinator,
                key: &key,
                url: &url,
                progress: ProgressOutput::new(self.quiet, self.json),
                wait: self.wait,
                taking: self.taking,
                quiet: self.quiet,
                conflict: exit::HELD,
                tree: (&outlived_reports, self.orphan_wait),
            };
            let request = coordinator.lease(key.as_str())?.timing(timing).heed_tree(self.orphan_wait);
            let (handle, _) = tokio::select! {
                got = acquisition.acquire(request, async |request| request.acquire_handle().await) => got?,
                signal = signals.ended() => {
                    // What may have been granted meanwhile is let go.
                    let _ = coordinator.shutdown().await;
                    return Ok(ExitCode::from(128 + signal as u8));
                }
            };
            match self.hand_out(&handle, file.as_ref()).and_then(|()| check_deadline(&handle)) {
                Ok(()) => Ok(ExitCode::SUCCESS),
                Err(failure) => {
                    // Nobody acts under it.
                    let _ = coordinator.release(&handle).await;
                    if let Some(file) = &file {
                        file.remove(&handle);
                    }
                    Err(failure)
                }
            }
        })
    }

    fn hand_out(&self, handle: &Handle, file: Option<&HandleFile>) -> Result<(), Failure> {
        let answer = HandleAnswer::of(handle).with_time_left(handle);
        match file {
            Some(file) => {
                file.make_room()?.write(handle)?;
                match self.json {
                    true => output::answer_json(&answer),
                    false => output::answer(&format!("{}\n", handle.token())),
                }
            }
            None if self.json => output::deliver_json(&answer.with_handle(handle)),
            None => output::deliver(&format!("{}\n", handle.reveal())),
        }
    }
}
