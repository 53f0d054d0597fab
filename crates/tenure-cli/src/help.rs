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
  75  another holder has it, or a process of its former CMD is alive: try again later, or wait longer
  76  the lease was lost and CMD was stopped, or the handle is not good any more: look why
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
  tenure acquire backup --file lease                 for scripts: hold it yourself, with renew and release
  tenure status backup                               who is at it, and for how much longer at most
  tenure ls                                          all leases
  tenure steal backup --reason 'it hangs'            take it from whoever is at it
  tenure watch                                       what happens to them, as it happens
  tenure history backup                              who had it before, and how that ended
  tenure probe s3://my-bucket/locks                  whether a store is fit for leases
  tenure run --help                                  more, on each command

The store is the first of these that is given:
  --store URL
  TENURE_STORE
  store = \"URL\" in the file that TENURE_CONFIG names, else in tenure/config.toml below
    XDG_CONFIG_HOME or ~/.config, else in /etc/tenure/config.toml
  the folder tenure below XDG_STATE_HOME or ~/.local/state

The last is another one for every user, root included: name a store where several users shall share leases. Where HOME \
is not set, as under cron, the password database tells it.

A store of the network is checked before anything is granted, once in a day on this machine; --check-store checks it now.

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
before the next holder is granted, as long as tenure or its watchdog runs. When CMD ends, what it left running is ended too, \
and the lease is let go. A signal ends the waiting, or is passed on to CMD.

If tenure and its watchdog are both killed, a process of CMD may outlive the lease. The next tenure run on this machine kills \
that process where it has a cgroup; otherwise it names the process and waits until it ends. With --orphan-wait it goes on after \
that time, and both may act at once.

Durations are written like 15s, 1m30s or 500ms.

",
    exit_codes!()
);

pub(crate) const ACQUIRE: &str = concat!(
    "\
Examples:
  token=$(tenure acquire backup --file lease)        wait for it, keep the handle in a file
  tenure renew --file lease                          between two steps, well within the ttl
  tenure release --file lease                        at the end
  handle=$(tenure acquire backup --no-wait)          or keep the handle in a variable
  tenure acquire backup --json                       for programs: token, time left and handle

A handle is what holds the lease, not a process: the lease runs out unless it is renewed within the ttl, and nobody stops \
the script then. Renew between its steps, stop at the first renewal that fails, and send the token with every write. Where \
one program does the work, tenure run is safer: it stops it in time.

Each renewal gives a new handle, and only that one is good from then on; with --file it is put in the place of the old one. \
Whoever has the handle can renew and release the lease, so keep it to yourself: arguments of commands can be seen by others \
on the machine, files and standard input cannot. A file is for one run of one script: two who share it would go on with each \
other's lease. So a handle that is there is not replaced, unless the machine has been restarted since.

",
    exit_codes!()
);

pub(crate) const RENEW: &str = concat!(
    "\
Examples:
  tenure renew --file lease || exit                  stop when it is lost
  handle=$(tenure renew \"$handle\") || exit           with the handle in a variable
  echo \"$handle\" | tenure renew                      without showing it to others

It tries until the deadline of the handle, and never after it: a lease that could not be renewed is lost, exit 76, also if \
nobody else has it yet. So is a handle from before a restart of the machine. The handle names its store.

",
    exit_codes!()
);

pub(crate) const RELEASE: &str = concat!(
    "\
Examples:
  tenure release --file lease                        and remove the file
  tenure release \"$handle\"                           with the handle in a variable
  trap 'tenure release --file lease' EXIT            however the script ends

Release when nothing acts under the lease any more: the next one is let in at once. Exit 0 also tells that nobody else had \
it until now; exit 76 that somebody has had it, or has it.

",
    exit_codes!()
);

pub(crate) const STEAL: &str = concat!(
    "\
Examples:
  tenure steal backup --reason 'it hangs'            ask, wait, and print a handle
  tenure steal backup --reason 'it hangs' -- backup --all
                                                     ask, wait, and run it
  tenure steal backup --reason 'host is gone' --now  do not wait

The holder is asked to let go. A tenure run stops its CMD and exits 76 with the reason; whoever renews a handle is told the \
reason and lets go by releasing it. It is waited for until it has let go, its ttl is over, or this machine can see that it is \
dead. If the ttl is over and a process of its CMD is still alive on this machine, steal waits for that too, or goes on after \
--orphan-wait. A holder that says that its CMD cannot be stopped, such as sudo, is not asked: exit 75. Two who steal at once both wait, and get it one after the other.

--now does not wait. The old holder may go on for as long as its ttl, a CMD that cannot be stopped until it ends by itself, and \
both act at once: only a resource that checks tokens \
keeps its late writes out.

",
    exit_codes!()
);

pub(crate) const STATUS: &str = "\
Examples:
  tenure status backup                               who holds it, its token, how long at most
  tenure status backup >/dev/null || echo free       for scripts
  tenure status --cost backup                        what a month of it costs in a bucket
  tenure status --json backup                        for programs

It only looks: nothing in the store is made or changed. How long a lease lasts at most is told as far as this machine can \
judge; a holder that it cannot judge yet counts as held. What is seen of that one is remembered in the folder \
tenure-logbook below XDG_STATE_HOME or ~/.local/state, so that the next look can judge.

Exit codes:
   0  somebody holds it, or it is reserved or closed, or it has run out and a process of its CMD is alive on this machine
   1  it is free
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const FORGET: &str = "\
Examples:
  tenure forget jobs --vacant-for 30d                what would be removed: jobs and what is below it
  tenure forget jobs --vacant-for 30d --yes          remove it
  tenure forget '' --vacant-for 30d -v               all leases, and why each of the others is kept
  tenure forget jobs --vacant-for 30d --yes --json   for programs

A lease that is let go keeps its record for ever, because it carries the token. This removes the records of those that \
nobody has wanted for long, with their values and histories. It is never needed: it is for stores that have grown too \
large to look at. Whoever wants such a lease again gets it as if it were new, with a greater token than all before.

What is held, reserved, closed, not ours or written a moment ago is kept; so is one whose holder died without letting go, \
until somebody takes it and lets it go. A store without a clock of its own is refused, because tokens would begin anew.

For how long a lease has been vacant goes by the wall clock of whoever let it go and the store's time.

Exit codes:
   0  every lease was looked at, also if all of them were kept
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const STORE: &str = "\
Examples:
  tenure store guarantees                            what the store that is used guarantees
  tenure store guarantees file:///srv/leases         what another one guarantees, also if it is not there yet

Exit codes:
  as in tenure --help
";

pub(crate) const GUARANTEES: &str = "\
Examples:
  tenure store guarantees                            the store that is used
  tenure store guarantees file:///srv/leases         another one, also if it is not there yet
  tenure store guarantees --json                     for programs

It only looks: nothing is made or changed.

Exit codes:
   0  it was said
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const PROBE: &str = "\
Examples:
  tenure probe s3://my-bucket/locks                  before the first lease: is this server fit?
  tenure probe                                       the store that is used
  tenure probe --rounds 200 s3://my-bucket/locks     longer, for a server that loses one race in many
  tenure probe --json s3://my-bucket/locks           for programs

A lease is worth as much as the conditional write under it, and several servers keep their conditions only while nobody \
races. The check when a store is connected finds those that always lie; this one takes its time. It makes every check of the \
contract, one by one and with racers over several connections, loses answers, reads and lists what it wrote, times calls, \
and recommends a ttl with its arithmetic. It ends with fit, fit with limits (something that leases do not need does not \
work there, such as a listing) or refused.

It writes below .tenure/probe/ and nowhere else, which ls hides, and removes all of it at the end, also after Ctrl-C. Where \
it may not delete (s3:DeleteObject), it says what it left and how to remove it. What a probe left that was killed goes with \
one of a later day. On a cloud each call is paid for: about how many there will be is said first.

That nothing was found is no proof. It restarts no server, and a server with several gateways should be probed through \
each of them.

Exit codes:
   0  it is fit, or fit with limits
  77  it is refused: two could act at once
  69  it cannot be reached, or may not be read or written: nothing is known of it
  128 + n  signal n ended it
  64, 78  as in tenure --help
";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure          and fpath=(~/.zfunc $fpath) before compinit
  tenure completions fish > ~/.config/fish/completions/tenure.fish

Exit codes:
   0  it was written
  64, 69  as in tenure --help
";

pub(crate) const MAN: &str = "\
Examples:
  tenure man | man -l -                              read it
  tenure man --out ~/.local/share/man/man1           then man tenure, man tenure-run, …

Exit codes:
   0  it was written
  64, 69  as in tenure --help
";

pub(crate) const LS: &str = "\
Examples:
  tenure ls                                          all leases, vacant ones too
  tenure ls billing                                  that and what is below it, not billing-old
  tenure ls --json                                   for programs

It only looks: nothing in the store is made or changed. A lease that cannot be read does not hide the others.

Exit codes:
   0  every lease was read
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const WATCH: &str = "\
Examples:
  tenure watch                                       all leases, those too that appear later
  tenure watch billing                               billing and billing/nightly, not billing-old
  tenure watch backup --renewals                     a sign of life of its holder, too
  tenure watch --json | jq -c 'select(.event == \"died\")'

It begins with how each lease stands, and then tells grants, releases, leases that ran out, holders that died, and what \
was done on purpose. It ends when it is ended, or when nobody reads any more. It only looks: nothing is made or changed, \
and a store that is not there yet is waited for.

A store that goes away is told once, and once more when it is back, with what changed meanwhile. Terms that were too \
short to be seen are told from the history, as far as that goes back; a lease never shows an older token after a newer.

Exit codes:
   0  nobody reads any more
  128 + n  signal n ended it
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const HISTORY: &str = "\
Examples:
  tenure history backup                              the last terms, newest first
  tenure history --json backup                       for programs

A record remembers the last eight terms that are over, beside the present one. Times are those of the wall clocks of \
the machines that wrote them: for people, and as right as those are. Where two of them disagree, so that a term would \
have ended before it began, the time is shown as ?.

Exit codes:
   0  they were shown, also if there are none
  64, 65, 69, 77, 78  as in tenure --help
";
