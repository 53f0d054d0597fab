//! Text below the options of `--help`: examples first, then the rules to rely on.

// Lines of examples and exit codes are at most 80 columns wide: a wrapped line would lose its column.

macro_rules! exit_codes {
    ($done:expr, $held:expr, $lost:expr) => {
        concat!(
            "Exit codes:\n",
            $done,
            "  64  the command line is wrong\n",
            "  65  the record is not a Tenure record, or is damaged: inspect it\n",
            "  69  the store cannot be reached, read or written: try again, or fix the\n",
            "      credentials\n",
            $held,
            $lost,
            "  77  the store was refused: it lacks or broke a guarantee, or other users could\n",
            "      change it: use another one\n",
            "  78  the configuration is wrong or unsafe, or the store does not exist: fix it\n",
        )
    };
}

macro_rules! code_of_cmd {
    () => {
        concat!(
            "  the exit code of CMD, or 128 + n if signal n killed it or ended the wait;\n",
            "    126 or 127 if CMD could not be started\n",
        )
    };
}

macro_rules! held {
    () => {
        concat!(
            "  75  another holder has the lease, or a process of the former holder's CMD is\n",
            "      alive: try again later, or wait longer\n",
        )
    };
}

pub(crate) const TENURE: &str = concat!(
    "\
Examples:
  tenure run backup -- backup --all            at most one at a time per user
  tenure run backup --no-wait -- backup --all  exit 75 if it is held
  tenure elect worker -- worker                lead or stand by, term after term
  tenure leader worker                         the leader and its address
  tenure hold backup --fd 9                    for scripts, while 9 is open
  tenure acquire backup --file lease           for scripts; then renew, release
  tenure status backup                         holder, token and time left
  tenure ls                                    all leases
  tenure slots gpu                             the holders of a group of slots
  tenure steal backup --reason 'it hangs'      take over from its holder
  tenure watch                                 report changes as they happen
  tenure history backup                        how the last terms ended
  tenure kv create config/shards 4             a small value with a revision
  tenure fence put report.csv <new.csv         refused if a newer holder wrote
  tenure probe s3://my-bucket/locks            test if a store is fit
  tenure demo                                  see why tokens are needed
  tenure run --help                            details of each command

Tenure uses the store from the first of these that is set:
  --store URL
  TENURE_STORE
  store = \"URL\" in the file that TENURE_CONFIG names, else in
    tenure/config.toml below XDG_CONFIG_HOME or ~/.config, else in
    /etc/tenure/config.toml
  otherwise the directory tenure below XDG_STATE_HOME or ~/.local/state

That directory differs for each user, root included: name a store with ?share=group if several users share leases. If HOME is not set, as \
in some systemd units, Tenure takes it from the password database.

Tenure checks a networked store before it grants a lease, once a day on each machine; --check-store checks it now.

",
    exit_codes!(
        concat!(code_of_cmd!(), "   1  status, leader, resign: the lease is free; kv get, fence get: there is\n",
            "      no entry or no content; demo: it did not show what it promises\n"),
        held!(),
        concat!(
            "  76  the lease was lost and CMD is not running, or the handle or the token is\n",
            "      no longer valid: the message says why\n",
        )
    )
);

pub(crate) const RUN: &str = concat!(
    "\
Examples:
  tenure run backup -- backup --all             wait without limit, then run it
  tenure run backup --wait 10m -- backup --all  exit 75 after ten minutes
  tenure run backup --no-wait -- backup --all   for cron: skip it if it is held
  tenure run report --kill-grace 3s -- report   three seconds from TERM to KILL
  tenure run job -- sh -c 'echo $TENURE_TOKEN'  CMD knows its token
  tenure run --slots 3 gpu -- train             at most three at a time
  tenure run backup --once-per 20h -- backup    once a day on several machines

CMD owns standard input, output and error, and the terminal. Messages of tenure itself go to standard error.

CMD gets TENURE_NAME, TENURE_TOKEN, TENURE_HOLDER and TENURE_STORE. Every new holder has a greater token. Send it with \
every write, so that the resource can refuse a late write of an earlier holder: tenure fence does so for files and values.

With --once-per DURATION, tenure skips CMD (75) if the last successful CMD began less than DURATION ago, by the clock of the store. \
So two machines whose clocks differ run a short job once. Only a CMD that ran with --once-per and exited with 0 is successful; \
--count-failures also counts failures. Choose less than the interval between two starts: 20h for a daily job. 0s ignores the last \
success. --once-per cannot be combined with --slots.

With --slots N, CMD runs under one of N slots of the group NAME, which is independent of the lease NAME. CMD also gets \
TENURE_SLOT, from 0 to N-1. Each slot has tokens of its own. All runs of a group use the same N: tenure slots changes it.

If tenure cannot renew the lease, CMD and everything that it started get TERM, and KILL after the grace. They are dead \
before the next holder is granted, as long as tenure or its watchdog runs. When CMD ends, tenure also kills the processes \
that CMD left running, and releases the lease. A signal ends the wait, or is passed on to CMD.

If tenure and its watchdog are both killed, a process of CMD may outlive the lease. The next tenure run on this machine \
kills that process if it has a cgroup; otherwise it names the process and waits until it ends. With --orphan-wait it \
continues after that time, and both may act at once.

Write durations as 15s, 1m30s or 500ms.

",
    exit_codes!(
        code_of_cmd!(),
        concat!(
            "  75  another holder has the lease, a process of the former holder's CMD is\n",
            "      alive, or CMD is not due by --once-per: try again later\n",
        ),
        concat!(
            "  76  the lease was lost, and CMD is not running: the message says why, and if\n",
            "      CMD was seen alive after the deadline, for how long\n",
        )
    )
);

pub(crate) const ELECT: &str = concat!(
    "\
Examples:
  tenure elect worker -- worker                    on each node; one runs worker
  tenure elect worker --address \"$IP:80\" -- worker  announce its address
  tenure elect worker --label zone=b -- worker     shown by tenure leader --json
  tenure elect worker --once -- worker             one term, then exit
  tenure resign worker --reason drain              hand over, from any machine

Each process that runs elect is a candidate. One of them leads: it holds the lease NAME and runs CMD, exactly as tenure run \
does. CMD and everything that it started are dead before the next leader is granted, as long as tenure or its watchdog runs. \
CMD gets TENURE_NAME, TENURE_TOKEN, TENURE_HOLDER and TENURE_STORE, with a greater token in each term.

When CMD exits, with any code, elect releases the lease and campaigns again. It also campaigns again after a loss, tenure \
resign and tenure steal. elect exits if CMD cannot be started (126, 127), or on an error that a retry does not change. If the \
store cannot be reached, it exits with 69 in its first campaign; after its first term it tries again without limit.

After a release and after a resignation it lets the other candidates try first, for a little more than 3/8 of the ttl. A CMD \
that runs for less than one ttl again and again doubles this pause, up to one minute.

The leader passes TERM, INT and QUIT on to CMD. When CMD has exited, elect releases the lease at once and exits with the code \
of CMD. A candidate that does not lead exits on these signals. The leader also passes HUP, USR1 and USR2 on to CMD, and \
continues; a candidate that does not lead ignores them.

The grant writes address, labels and value into the record. Between terms, tenure executes itself again, with the same \
process id.

",
    exit_codes!(
        code_of_cmd!(),
        "",
        "  76  with --once: the lease was lost, and CMD is not running\n"
    )
);

pub(crate) const HOLD: &str = concat!(
    "\
Examples:
  exec 9>>/var/lock/backup.lock                in the script: open a file, and
  token=$(tenure hold backup --fd 9) || exit   hold the lease while it is open
  exec 9>&-                                    close it: the lease is released
  tenure hold backup --fd 9 --no-wait || exit  exit 75 if it is held
  tenure hold backup --pid $$                  without a file: see below

hold prints the token and returns when the lease is granted. A keeper stays in the background and renews the lease, \
however long a step takes.

With --fd, the lease is bound to a file that the script has open for writing. The processes that the script starts \
inherit the descriptor. When the last of them has closed it, or has ended or was killed, the keeper releases the \
lease at once. A daemon that should not keep the lease is started with 9>&-. Nothing is written to the file, and \
several scripts may use one.

With --pid, the keeper renews until that process has ended. It does not release the lease, because other processes of \
the script may go on: the lease lapses by its ttl.

If the lease is lost, or no renewal has succeeded when 5s, or a third of the ttl if that is less, are left, the keeper sends TERM to \
all processes that have the descriptor, or to PID, and exits with 76. --signal chooses another signal. The keeper \
sends it once, and no KILL follows. It reports the loss on standard error, unless that is a pipe or a socket.

A script does not notice if its keeper is stopped or killed: then the lease lapses. tenure run has a watchdog, \
which kills the script in time, so prefer it. Send the token with every write: export TENURE_NAME=backup \
TENURE_TOKEN=$token for tenure fence. The keeper is called lease-keeper, so pkill tenure does not end it.

",
    exit_codes!(
        concat!(
            "   0  the lease is held\n",
            "  128 + n  signal n ended the wait\n",
        ),
        held!(),
        concat!(
            "  76  the lease was lost before the token was printed; also the exit code of the\n",
            "      keeper after a loss\n",
        )
    )
);

pub(crate) const ACQUIRE: &str = concat!(
    "\
Examples:
  token=$(tenure acquire backup --file lease)  wait; keep the handle in a file
  tenure renew --file lease                    between two steps, within the ttl
  tenure release --file lease                  at the end
  handle=$(tenure acquire backup --no-wait)    or keep the handle in a variable
  tenure acquire backup --json                 token, time left and handle

The handle holds the lease, not a process. The lease runs out unless the script renews it within the ttl, and nothing \
stops the script then. Renew between its steps, stop at the first failed renewal, and send the token with every write. If \
one program does all the work, tenure run is safer: it stops that program when the lease is lost.

Each renewal prints a new handle and invalidates the old one; with --file it replaces the old one in the file. A handle is \
a secret: with it, any process can renew and release the lease. Other users of the machine can see arguments of commands, but \
not private files and standard input. A file belongs to one run of one script: two runs that share it would use each \
other's lease. So acquire does not replace an existing handle, unless the machine has restarted since.

",
    exit_codes!(
        concat!(
            "   0  the lease was acquired\n",
            "  128 + n  signal n ended the wait\n",
        ),
        held!(),
        "  76  the lease ran out before the handle was printed: use a longer ttl\n"
    )
);

pub(crate) const RENEW: &str = concat!(
    "\
Examples:
  tenure renew --file lease || exit         stop when it is lost
  handle=$(tenure renew \"$handle\") || exit  with the handle in a variable
  echo \"$handle\" | tenure renew             without showing it to other users

renew tries until the deadline of the handle, and never after it. A lease that could not be renewed is lost (exit 76), even \
if no other holder has it yet. After a restart of the machine, the lease of an earlier handle is lost too. The handle names its store.

",
    exit_codes!(
        "   0  the lease was renewed\n",
        "",
        concat!(
            "  76  the lease was lost, or the handle is no longer valid: stop the work; the\n",
            "      message says why\n",
        )
    )
);

pub(crate) const RELEASE: &str = concat!(
    "\
Examples:
  tenure release --file lease              and remove the file
  tenure release \"$handle\"                 with the handle in a variable
  trap 'tenure release --file lease' EXIT  whenever the script exits

Release when all work under the lease has ended: the next contender is granted at once. Exit 0 also means that no other \
holder had the lease until now. Exit 76 means that the handle is no longer valid: it was renewed or released before, or another \
holder has or had the lease.

",
    exit_codes!(
        "   0  the lease was released\n",
        "",
        concat!(
            "  76  the lease was lost, or the handle is no longer valid: the message says why\n",
        )
    )
);

pub(crate) const STEAL: &str = concat!(
    "\
Examples:
  tenure steal backup --reason hangs                  ask, wait, print a handle
  tenure steal backup --reason hangs -- backup --all  ask, wait, and run it
  tenure steal backup --reason 'host is gone' --now   do not wait

steal asks the holder to release. If the holder is a tenure run, it stops its CMD and exits 76 with the reason. If it is a \
script, its next renew exits 76 with the reason; the script must then stop and run release.

steal waits until the holder has released, its ttl is over, or this machine can see that it is dead. If the ttl is over and a process of its CMD is still alive on this machine, steal waits for that process \
too, or continues after --orphan-wait. A holder whose CMD cannot be stopped, such as sudo, is not asked: exit 75. Two \
concurrent steals both wait, and get the lease one after the other.

With --now it does not wait. The old holder may act until its ttl is over; if its CMD cannot be stopped, CMD may act until \
it ends by itself. During that time both may act: only a resource that checks tokens refuses the late writes.

",
    exit_codes!(
        concat!(code_of_cmd!(), "   0  without a CMD: the lease was acquired\n"),
        held!(),
        concat!(
            "  76  the lease was lost and CMD is not running, or it ran out before the\n",
            "      handle was printed: the message says why\n",
        )
    )
);

pub(crate) const LEADER: &str = "\
Examples:
  tenure leader worker                         holder, address and token
  tenure leader worker --wait 30s              wait for one; exit 1 after 30s
  tenure leader worker --watch                 this one, then every change
  tenure leader worker --json | jq -r .address

leader only reads: it changes nothing in the store. The holder of the lease NAME is the leader until it has resigned or its \
ttl is over, even if it was asked to resign. The time left is an upper bound; a leader that renews leads for longer. The \
answer may be out of date when you read it: a resource that the leader writes to must check the token.

The address is the one that the leader announced with tenure elect --address. --watch never shows an older token after a \
newer one. It reports a change at once where the store gives hints, as a directory does; otherwise within half a ttl, and a \
leader after a time without one within 10 s. It does not show terms that begin and end between two reads: tenure history does.

Exit codes:
   0  there is a leader; with --watch: its output was closed
   1  there is none, or none within --wait
  128 + n  signal n ended the wait
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const RESIGN: &str = concat!(
    "\
Examples:
  tenure resign worker --reason 'deploy of 4.2'   ask, and wait until it has
  tenure resign worker --reason drain --wait 30s  exit 75 after 30 seconds
  tenure resign worker --reason drain && tenure leader worker --wait 30s

resign asks the leader to release the lease NAME, from any machine that can write to the store. A tenure elect stops its CMD, \
releases, and lets the other candidates try first; without another candidate it leads again after a little more than 3/8 of \
the ttl. A tenure run stops its CMD and exits 76.

resign waits until the leader has released, its ttl is over, or this machine can see that it is dead. It does not hold the \
lease itself. It asks only the present leader, not one that is elected during the wait. It does not ask a leader whose CMD \
cannot be stopped, such as sudo: exit 75.

",
    exit_codes!(
        concat!(
            "   0  the term of the leader is over\n",
            "   1  there was no leader\n",
            "  128 + n  signal n ended the wait\n",
        ),
        concat!(
            "  75  the leader has not resigned within --wait, or cannot stop its CMD: wait\n",
            "      longer, or stop that CMD\n",
        ),
        ""
    )
);

pub(crate) const STATUS: &str = "\
Examples:
  tenure status backup                          holder, process, times, store
  tenure status backup >/dev/null               0 held, 1 free, else an error
  tenure status --cost backup                   monthly cost in a bucket
  tenure status --json backup                   for programs

The first line is for scripts, and the lines below it are for people. The process is as the holder describes it; times are \
estimates, because the clocks of two machines may differ.

status only reads: it changes nothing in the store. The time left is an upper bound. A lease whose expiry this machine cannot \
confirm yet counts as held. tenure remembers such a sighting in the directory tenure-logbook below \
XDG_STATE_HOME or ~/.local/state, so that the next status can confirm it.

Exit codes:
   0  the lease is held, reserved or closed, or it has run out and a process of
      its CMD is alive on this machine
   1  it is free
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const FORGET: &str = "\
Examples:
  tenure forget jobs --vacant-for 30d               dry run: jobs and all below
  tenure forget jobs --vacant-for 30d --yes         remove the records
  tenure forget '' --vacant-for 30d -v              all; why each one is kept
  tenure forget jobs --vacant-for 30d --yes --json  for programs

A released lease keeps its record, because the record carries the token. forget removes records that have been vacant for \
long, with their values, histories and last successes: DURATION must be longer than every --once-per. It is never necessary; it \
is for stores that have grown too large to list. A later \
holder of such a lease still gets a greater token than all holders before.

forget keeps a record that is held, reserved, closed or foreign, or that changed while forget ran. It also keeps the record of a holder \
that died, until another holder has released the lease. A store without a clock is refused, because its tokens would restart.

The time for which a lease has been vacant comes from the wall clock of its last holder and the store's time.

Exit codes:
   0  every lease was examined, even if all were kept
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const KV: &str = "\
Examples:
  tenure kv create config/shards 4             create it, unless it exists
  tenure kv get config/shards                  print its value
  tenure kv cas config/shards 1794729600000000 8
                                               replace exactly that revision
  tenure kv create nodes/a 10.0.0.7 --ttl 60s  runs out without a renewal
  tenure kv renew nodes/a                      lasts for another 60s
  tenure kv release nodes/a                    remove it
  tenure kv ls                                 all plain keys

A plain key has at most one entry: a value, a revision that grows with every change, an owner, and an optional ttl. Every \
change is one conditional write. A lease is never a plain key, and a plain key is never a lease.

The owner is you on this machine: a secret in the file tenure-owner below XDG_STATE_HOME or ~/.local/state. Only the owner \
renews and releases an entry. --owner NAME selects another owner of yours.

Exit codes:
   0  done
   1  get: there is no entry
  75  create: the key has an entry; cas: the entry has another revision
  76  renew, release: there is no entry, or it is another owner's
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const KV_CREATE: &str = "\
Examples:
  tenure kv create config/shards 4               never runs out
  tenure kv create nodes/a 10.0.0.7 --ttl 60s    runs out without a renewal
  tenure kv create job/plan - <plan.json         value from standard input
  tenure kv create nodes/a x --ttl 60s --wait 2m wait for the present entry

An entry that this machine knows to have run out counts as absent. Where the store does not report the age of an entry, a \
machine knows it once it has seen the entry for slightly longer than its ttl; --wait waits for that.

If the answer of the store is lost, create reads the key back. If that read does not show the outcome, it exits with 69 and \
the message says that the change may have been applied.

Exit codes:
   0  the entry was created
  75  the key has an entry: the message shows its revision, owner and time left
  128 + n  signal n ended the wait
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const KV_CAS: &str = "\
Examples:
  tenure kv cas config/shards 1794729600000000 8
  tenure kv cas config/shards 0 4                create it
  r=$(tenure kv get config/shards --json | jq .revision)
  tenure kv cas config/shards $r 8               replace what was read

The new entry is yours, and its ttl begins now. An entry that has run out counts as absent: its old revision is a conflict.

If the answer of the store is lost, cas reads the key back. If that read does not show the outcome, it exits with 69 and the \
message says that the change may have been applied.

Exit codes:
   0  the entry was replaced, or created
  75  conflict: the entry has another revision, or there is none
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const KV_GET: &str = "\
Examples:
  tenure kv get config/shards                    the value, and a line break
  tenure kv get config/shards --json             revision, owner and time left
  tenure kv get nodes/a || echo 'a is not there'

get only reads: it changes nothing in the store. On a terminal, control characters in the value are shown as escapes.

Exit codes:
   0  there is an entry
   1  there is none, or it has run out
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const KV_RENEW: &str = "\
Examples:
  tenure kv renew nodes/a                        its ttl begins now
  tenure kv renew nodes/a --owner agent          as another owner of yours

The revision stays. An entry that has run out does not come back.

Exit codes:
   0  the entry was renewed
  76  there is no entry, or it is another owner's
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const KV_RELEASE: &str = "\
Examples:
  tenure kv release nodes/a
  tenure kv release nodes/a --owner agent        as another owner of yours

release clears the value. The next entry has a greater revision.

Exit codes:
   0  the entry was removed
  76  there is no entry, or it is another owner's
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const KV_LS: &str = "\
Examples:
  tenure kv ls                               all plain keys
  tenure kv ls nodes                         nodes and nodes/a, not nodes-old
  tenure kv ls --json | jq -r '.keys[].name'

ls only reads: it changes nothing in the store. It leaves out leases, and keys without an entry.

Exit codes:
   0  every key was read
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const FENCE: &str = "\
Examples:
  tenure run report -- sh -c 'make-report | tenure fence put report.csv'
  tenure fence append ledger.csv <rows.csv     add rows, durably
  tenure fence seal report.csv                 the first act of a new holder
  tenure fence check report.csv                would the token be admitted?
  tenure fence get report.csv                  print it
  tenure fence put s3://my-bucket/report.csv <report.csv
  tenure fence put key:report <report.csv      a value in the store

A holder can be paused after it has checked its lease and before it writes. Then its write comes late, after that of the next \
holder. A fenced target remembers the greatest token that it has admitted, and refuses every smaller one, in the same step as \
the write.

Lease and token come from TENURE_NAME and TENURE_TOKEN, which tenure run sets, and TENURE_SLOT of tenure run --slots. A script \
with a handle names them: --name backup --token \"$token\". All writers of a target use the same lease.

A target is a file on a local disk, with its mark beside it in .NAME.fence; an object (s3://, gs://, az://), with its mark in its \
first line; or key:NAME, a value in the store. Only writes through tenure are fenced: a program that writes to the file itself \
is not stopped. The first write of a day to a bucket checks that the bucket refuses what it must, in the folder of the object.

Exit codes:
   0  done; check: the token would be admitted now
   1  get: there is no content
  65  the target has content that is not fenced, or was changed by another program
  76  the token is stale: a newer holder has been there, and the message has both
      tokens; stop
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const FENCE_PUT: &str = "\
Examples:
  tenure fence put report.csv <new.csv           replace the file as a whole
  make-report | tenure fence put report.csv      only a complete report
  tenure fence put s3://my-bucket/r.csv <r.csv   an object, up to 64 MiB
  tenure fence put key:report <report.csv        a value in the store
  tenure fence put --name backup --token \"$t\" x  in a script with a handle

A reader sees the old file or the new one, never a part. put returns when the new one is on the disk. It keeps the owner and the \
permissions of the file. Standard input is read to its end first, so use pipefail: put does not know whether the program \
before it failed.

The mark of report.csv is .report.csv.fence. Do not remove it: it has the greatest token. A file with content and without a \
mark is refused. With --adopt it is accepted once, if no earlier holder can still write.

Exit codes:
   0  the target was replaced
  65  it has content that is not fenced, or a mark that is damaged
  69  it could not be written; if the message says that this is not known, put it
      again or read it
  76  the token is stale: a newer holder has been there; stop
  64, 77, 78  as in tenure --help
";

pub(crate) const FENCE_APPEND: &str = "\
Examples:
  tenure fence append ledger.csv <rows.csv       add rows
  echo done | tenure fence append job.log        one line
  tenure fence append --adopt old.log <rows.csv  start to fence old.log

All bytes are appended, or none: the mark records what is appended, and the next append cuts off what a crash has left. append \
returns when they are on the disk. Standard input is read to its end first.

A file that is longer or shorter than its mark says was changed by another program, such as logrotate. append refuses it and \
cuts off nothing. With --adopt the file is accepted as it is.

Exit codes:
   0  the bytes were appended
  65  the file has content that is not fenced, or was changed by another program
  69  it could not be written; if the message says that this is not known, read it
      before the next append
  76  the token is stale: a newer holder has been there; stop
  64, 77, 78  as in tenure --help
";

pub(crate) const FENCE_GET: &str = "\
Examples:
  tenure fence get report.csv                    its content
  tenure fence get report.csv --json             lease, token and length
  tenure fence get key:report                    a value in the store

get needs no token, and only reads. Of a file that is appended to, it prints the complete appends only. On a terminal, control \
characters are shown as escapes.

Exit codes:
   0  there is content
   1  there is none
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const FENCE_SEAL: &str = "\
Examples:
  tenure run report -- sh -c 'tenure fence seal report.csv && make-report'

Without a seal, a late write of an earlier holder is admitted until the new holder has written. With it, it is refused from the \
first moment on. The content stays.

Exit codes:
   0  the target refuses every smaller token
  76  the token itself is stale: stop
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const FENCE_CHECK: &str = "\
Examples:
  tenure fence check report.csv || exit          before a long computation
  tenure fence check report.csv --json           the greatest token

check only reads. A newer holder may come between the check and the write, so only the write itself proves that the token is \
admitted.

Exit codes:
   0  the token would be admitted now
  76  it is stale: a newer holder has been there; stop
  64, 65, 69, 77, 78  as in tenure --help
";

pub(crate) const STORE: &str = "\
Examples:
  tenure store guarantees                     guarantees of the current store
  tenure store guarantees file:///srv/leases  of another, even before it exists
  tenure store init                           create its directory or its tables

Exit codes:
  as in tenure --help
";

pub(crate) const INIT: &str = "\
Examples:
  tenure store init postgres://me@db.example.org/app          create the tables
  tenure store init --print postgres://me@db.example.org/app  print the statements that create them
  tenure store init --print --fences >fences.sql  a fence for your own tables

The first write creates the directory or the tables of a store, too, if it may. This command is for a store whose users may not: \
an administrator runs it once. With --print it sends nothing. A bucket or a container needs nothing but itself.

--fences prints statements for PostgreSQL. They install a table and functions that refuse a transaction with a stale token, in \
the schema of the store. An administrator may run them again.

Exit codes:
   0  the store exists, or the statements were printed
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const GUARANTEES: &str = "\
Examples:
  tenure store guarantees                     the current store
  tenure store guarantees file:///srv/leases  another one, even before it exists
  tenure store guarantees --json              for programs

The command only reads: it creates and changes nothing.

Exit codes:
   0  the guarantees were printed
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const PROBE: &str = "\
Examples:
  tenure probe s3://my-bucket/locks               before the first lease
  tenure probe                                    the current store
  tenure probe --rounds 200 s3://my-bucket/locks  for a server that fails rarely
  tenure probe --json s3://my-bucket/locks        for programs

A lease is as safe as the conditional writes of its store, and some servers break their conditions only under races. The \
safety check finds servers that always break them; probe takes longer and finds more. It checks every clause of the contract, one by \
one and with racers over several connections. It simulates lost answers, reads and lists what it wrote, measures latencies, and \
recommends a ttl with its arithmetic. The result is fit, refused, or fit with limits: a feature that leases do not \
need, such as the listing, does not work.

probe writes only below .tenure/probe/, which ls hides, and removes everything at the end, also after Ctrl-C. If it may not \
delete (s3:DeleteObject), it prints what it left and how to remove it. A probe on a later day removes the remains of a \
killed one. Clouds charge for each call: probe first prints the approximate number.

A probe without findings is no proof. It restarts no server, and a server with several gateways should be probed through \
each of them.

Exit codes:
   0  the store is fit, or fit with limits
  77  it is refused: two holders could act at once
  69  it cannot be reached, read or written: nothing is known
  128 + n  signal n ended the probe
  64, 78  as in tenure --help
";

pub(crate) const DEMO: &str = "\
Examples:
  tenure demo                        the accident, and then the fence
  tenure demo --no-fence             only the accident
  tenure demo --pause 1s             a pause that the lease survives
  tenure demo --ttl 10s --pause 30s  slower
  tenure demo --json | jq -c 'select(.event == \"summary\")'

A process can be stopped after it has checked its lease and before it writes. When it continues, another process may hold the \
lease, and the write still goes out. demo shows this with two real processes, a real lease and a ledger: it stops the holder \
with SIGSTOP just before a write, waits until the other process has taken over and finished the batch, and continues it \
with SIGCONT.

Without a fence, the ledger accepts the late row: a payment is there twice. With a fence, the ledger remembers the greatest token \
that it has seen, and refuses a smaller one in the same step as the write.

If --pause is longer than --ttl, the pause lasts at least until the other process has finished. A shorter pause does not end the \
lease: the other process does not take over, and the row is right.

demo needs no store and no network. It works in a new directory below TMPDIR or /tmp, which it removes at the end, also after \
Ctrl-C. It takes about 12 seconds.

Exit codes:
   0  it has shown what it promises, or its reader closed the pipe
   1  it has not: a stale row was accepted, none was refused although the holder
      was replaced, or the machine is too busy; the message says which
  128 + n  signal n ended it
  64, 69, 77  as in tenure --help
";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure
  tenure completions fish > ~/.config/fish/completions/tenure.fish

For zsh, add fpath=(~/.zfunc $fpath) to ~/.zshrc, before compinit.

In bash, zsh and fish, the names of leases are completed from the store that the line, TENURE_STORE or the configuration names. \
This only reads, and gives up after one second. Names that a shell would interpret are left out.

Exit codes:
   0  the completions were written
  64, 69  as in tenure --help
";

pub(crate) const MAN: &str = "\
Examples:
  tenure man | man -l -                     read it
  tenure man --out ~/.local/share/man/man1  then man tenure, man tenure-run, …

Exit codes:
   0  the manual was written
  64, 69  as in tenure --help
";

pub(crate) const LS: &str = "\
Examples:
  tenure ls          all leases, including vacant ones
  tenure ls billing  billing and billing/nightly, not billing-old
  tenure ls --json   for programs

ls only reads: it changes nothing in the store. A lease that cannot be read does not hide the others. The store is named on \
standard error.

Exit codes:
   0  every lease was read
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const SLOTS: &str = "\
Examples:
  tenure run --slots 3 gpu -- train            at most three at a time
  tenure slots gpu                             size, holders and time left
  tenure slots gpu --resize 5                  five from now on
  tenure slots                                 all groups
  tenure slots gpu --json | jq .held           how many are held

The first run --slots N of a group stores N with it. A run with another N exits with 64, and the message has both numbers. \
After --resize, start new runs with the new number.

A shrink stops no CMD: the holders of the highest slots finish, and no new run is granted those slots.

Without --resize, slots only reads: it changes nothing in the store.

Exit codes:
   0  it was printed, or the group was resized
  64  the command line is wrong, or the group to resize was never used
  65, 69, 77, 78  as in tenure --help
";

pub(crate) const WATCH: &str = "\
Examples:
  tenure watch                    all leases, including later ones
  tenure watch billing            billing and billing/nightly, not billing-old
  tenure watch backup --renewals  with each renewal as a sign of life
  tenure watch --json | jq -c 'select(.event == \"died\")'

watch first prints the standing of each lease. Then it reports grants, releases, leases that ran out, holders that died, \
takeovers and closed leases. It runs until a signal ends it or its reader closes the pipe. It only reads, and waits for a store that \
does not exist yet.

A store that becomes unavailable is reported once, and again when it is back, with the changes in between. Terms that were \
too short to be seen are reported from the history, as far as it reaches back. A lease never shows an older token after a \
newer one.

Exit codes:
   0  the reader closed the pipe
  128 + n  signal n ended it
  64, 69, 77, 78  as in tenure --help
";

pub(crate) const HISTORY: &str = "\
Examples:
  tenure history backup         the last terms, newest first
  tenure history --json backup  for programs

A record keeps the last eight finished terms, and the current one. Times come from the wall clocks of the machines that \
wrote them, and are only as right as those. If two clocks disagree so that a term would end before it began, the time is \
shown as ?.

Exit codes:
   0  the terms were printed, even if there are none
  64, 65, 69, 77, 78  as in tenure --help
";
