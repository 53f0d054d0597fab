use std::process::ExitCode;

use crate::args::{Acquire, Announcement, Args, Run, Steal, Supervision, Waiting};
use crate::exit::{self, Failure};
use crate::run;
use crate::signals::Reload;

/// Takes over a lease, and runs a command under it, or prints its handle.
pub(crate) fn steal(args: &Args, steal: &Steal) -> Result<ExitCode, Failure> {
    let waiting = Waiting { wait: steal.wait, wait_seconds: None, no_wait: false };
    if steal.command.is_empty() {
        let acquire = Acquire {
            name: steal.name.clone(),
            ttl: steal.ttl.unwrap_or(Acquire::TTL),
            waiting,
            orphan_wait: steal.orphan_wait,
            holder: steal.holder.clone(),
            file: steal.file.clone(),
            quiet: steal.quiet,
            json: steal.json,
            taking: Some(steal.taking.clone()),
        };
        return super::acquire(args, &acquire);
    }
    let run = Run {
        name: steal.name.clone(),
        slots: None,
        supervision: Supervision {
            ttl: steal.ttl.unwrap_or(Run::TTL),
            holder: steal.holder.clone(),
            hide_command: steal.hide_command,
            kill_grace: steal.kill_grace,
            strict: steal.strict,
            orphan_wait: steal.orphan_wait,
            verbose: steal.verbose,
            json: steal.json,
        },
        waiting,
        once_per: None,
        count_failures: false,
        conflict_exit_code: exit::HELD,
        quiet: steal.quiet,
        taking: Some(steal.taking.clone()),
        announcement: Announcement::default(),
        reload: Reload::Ends,
        command: steal.command.clone(),
    };
    run::run(args, &run)
}
