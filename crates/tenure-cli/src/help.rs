//! What `--help` says below the options: examples first, then what one needs to rely on.

macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  the exit code of CMD, and 128 + n when signal n ended it; 126 or 127 when it could not be started
   1  status alone: it is free
  64  the command line is wrong
  65  the record is not ours to touch: look at it
  69  the store cannot be reached, or may not be read or written: try again, or fix the credentials
  75  somebody else holds it: try again later, or wait for longer
  76  the lease was lost and CMD was stopped: look why the store did not answer in time
  77  the store was refused, because a guarantee is missing or was seen broken: use another
  78  the configuration is wrong, or cannot be safe: fix it
"
    };
}

pub(crate) const TENURE: &str = concat!(
    "\
Examples:
  tenure run backup -- /usr/local/bin/backup --all   one backup at a time on this machine
  tenure run backup --no-wait -- backup --all        or none, if somebody else is at it: exit 75
  tenure status backup                               who is at it, and for how much longer at most
  tenure ls                                          all leases
  tenure run --help                                  more, on each command

The store is the first of these that is given:
  --store URL
  TENURE_STORE
  store = \"URL\" in the file that TENURE_CONFIG names, else in tenure/config.toml below
  XDG_CONFIG_HOME or ~/.config, else in /etc/tenure/config.toml
  the folder tenure below XDG_STATE_HOME or ~/.local/state

The last is another one for every user, root included: name a store where several users shall share leases. Where HOME \
is not set, as under cron, the password database tells it.

",
    exit_codes!()
);

pub(crate) const RUN: &str = concat!(
    "\
Examples:
  tenure run backup -- backup --all                  wait for ever, then run it
  tenure run backup --wait 10m -- backup --all       wait for ten minutes, else exit 75
  tenure run backup --no-wait -- backup --all        for cron: leave it to whoever is at it
  tenure run report --kill-grace 3s -- report        leave it three seconds to stop in order
  tenure run counter -- sh -c 'echo $TENURE_TOKEN'   CMD knows its token

Standard input, output and error belong to CMD, and so does the terminal. What tenure itself has to say goes to \
standard error.

CMD gets TENURE_NAME, TENURE_TOKEN, TENURE_HOLDER and TENURE_STORE. The token is greater for every new holder: send it \
with every write, so that what CMD writes too late can be told from what its successor writes.

When the lease cannot be renewed, CMD and all that it started get TERM, and KILL after the grace, so that they are dead \
before anybody else is let in. When CMD ends, what it left running is ended too, and the lease is let go. A signal ends \
the waiting, or is passed on to CMD.

Durations are written like 15s, 1m30s or 500ms.

",
    exit_codes!()
);

pub(crate) const STATUS: &str = "\
Examples:
  tenure status backup                               who holds it, its token, how long at most
  tenure status backup >/dev/null || echo free       for scripts
  tenure status --json backup                        for programs

It only looks: nothing is made or changed. How long a lease lasts at most is told as far as this machine can judge; a \
holder that it cannot judge yet counts as held.

Exit codes:
   0  somebody holds it, or it is reserved or closed: nobody else is let in
   1  it is free
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const LS: &str = "\
Examples:
  tenure ls                                          all leases, vacant ones too
  tenure ls billing                                  that and what is below it, not billing-old
  tenure ls --json                                   for programs

It only looks: nothing is made or changed. A lease that cannot be read does not hide the others.

Exit codes:
   0  every lease was read
  64, 69, 77, 78  as in tenure --help
";
