use std::process::ExitCode;

use super::acquire::HandleRequest;
use crate::args::{Args, Run, Steal, Waiting};
use crate::exit::{self, Failure};
use crate::run;

/// Takes over a lease, and runs a command under it, or prints its handle.
pub(crate) fn steal(args: &Args, steal: &Steal) -> Result<ExitCode, Failure> {
    let Steal {
        name,
        taking,
        ttl,
        wait,
        holder,
        file,
        kill_grace,
        orphan_wait,
        strict,
        quiet,
        json,
        command,
    } = steal;
    if !command.is_empty() {
        let run = Run {
            name: name.clone(),
            ttl: ttl.unwrap_or(Run::TTL),
            waiting: Waiting { wait: *wait, no_wait: false },
            holder: holder.clone(),
            kill_grace: *kill_grace,
            orphan_wait: *orphan_wait,
            strict: *strict,
            conflict_exit_code: exit::HELD,
            quiet: *quiet,
            json: *json,
            taking: Some(taking.clone()),
            command: command.clone(),
        };
        return run::run(args, &run);
    }
    let request = HandleRequest {
        name,
        ttl: ttl.unwrap_or(crate::args::Acquire::TTL),
        wait: *wait,
        orphan_wait: *orphan_wait,
        holder: holder.as_deref(),
        file: file.as_ref(),
        taking: Some(taking),
        quiet: *quiet,
        json: *json,
    };
    request.run(args)
}
