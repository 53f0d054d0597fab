use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use super::cgroup_texts::CgroupTexts;
use super::mount::Mount;
use super::stat::Stat;

/// Scheduling of the guards of a tree, which decides how late they may wake up.
///
/// A guard that wakes up late kills late. Measured on one processor beside 16 busy loops: 1 s late at nice 19, in time
/// at nice −20; with 2 ms of processor time in each 100 ms: 0.45 s late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    class: Class,
    quota: Option<Quota>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Runs before every other class.
    RealTime,
    /// Shares the processor by weight.
    Nice(i32),
    /// Runs when no other class wants to.
    Idle,
}

/// The processor time that a cgroup may use in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quota {
    time: Duration,
    period: Duration,
}

impl Schedule {
    /// The schedule that the guards of this process will have: they raise their priority as far as they may.
    pub(super) fn of_the_guards(texts: &CgroupTexts) -> Self {
        let class = match class_of(&fs::read("/proc/self/stat").unwrap_or_default()) {
            Class::Nice(nice) => Class::Nice(attainable(nice)),
            class => class,
        };
        Self { class, quota: quota(&texts.mounts, &texts.own, |path| fs::read_to_string(path).ok()) }
    }

    /// The largest lateness with which a guard still has the tree dead in time.
    pub(super) fn margin(&self) -> Duration {
        let class = match self.class {
            Class::RealTime => Duration::ZERO,
            Class::Nice(nice) => PER_NICE * u32::try_from(nice).unwrap_or(0),
            Class::Idle => IDLE,
        };
        let quota = self.quota.map_or(Duration::ZERO, Quota::throttled);
        MARGIN_LEAST + class + quota
    }

    /// True if the margin is longer than that of an ordinary process.
    pub(super) fn is_slow(&self) -> bool {
        self.margin() > MARGIN_LEAST
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::RealTime => "in a real-time class".to_owned(),
            Class::Nice(nice) => format!("at nice {nice}"),
            Class::Idle => "in the idle scheduling class".to_owned(),
        };
        f.write_str(&class)?;
        match self.quota {
            Some(Quota { time, period }) => write!(f, ", with {time:?} of processor time in each {period:?}"),
            None => Ok(()),
        }
    }
}

impl Quota {
    /// Time for which a guard may be throttled before it has had the processor time to kill a tree.
    fn throttled(self) -> Duration {
        let periods = SWEEP.as_nanos().div_ceil(self.time.as_nanos().max(1)) + 1;
        self.period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX))
    }

    /// The share of a processor, in millionths.
    fn share(&self) -> u128 {
        self.time.as_nanos() * 1_000_000 / self.period.as_nanos().max(1)
    }
}

/// Gives this thread, and those that it starts, the highest priority that it may have.
pub(super) fn raise_priority() {
    let Ok(present) = rustix::process::getpriority_process(None) else { return };
    let _ = priorities_to_try(present)
        .map(|nice| rustix::process::setpriority_process(None, nice))
        .find(Result::is_ok);
}

/// Priorities to try, in this order. Only higher ones: a lower one is always allowed, and could not be undone.
fn priorities_to_try(present: i32) -> impl Iterator<Item = i32> {
    PRIORITIES.into_iter().filter(move |&nice| nice < present)
}

/// The priority that [`raise_priority`] reaches. It is undone: the command keeps that of its caller.
fn attainable(nice: i32) -> i32 {
    let raised: io::Result<i32> = (|| {
        raise_priority();
        let raised = rustix::process::getpriority_process(None)?;
        rustix::process::setpriority_process(None, nice)?;
        Ok(raised)
    })();
    raised.map_or(nice, |raised| raised.min(nice))
}

/// The class, from the fields `nice` and `policy` of `/proc/self/stat`.
fn class_of(stat: &[u8]) -> Class {
    let stat = Stat::parse(stat);
    let value = |number| stat.as_ref().and_then(|stat| stat.value(number)).unwrap_or(0);
    match value(41) {
        // SCHED_FIFO, SCHED_RR, SCHED_DEADLINE; SCHED_IDLE.
        1 | 2 | 6 => Class::RealTime,
        5 => Class::Idle,
        _ => Class::Nice(value(19)),
    }
}

/// The smallest quota of the cgroups of a process.
fn quota(mounts: &str, own: &str, read: impl Fn(&Path) -> Option<String>) -> Option<Quota> {
    let found = own.lines().flat_map(|line| {
        // id:controllers:path; the unified hierarchy has no controllers here.
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let unified = controllers.is_empty();
        let mount = if unified || controllers.split(',').any(|name| name == "cpu") {
            mount_of(mounts, unified)
        } else {
            None
        };
        let directories = mount.map(|mount| directories(mount, path)).unwrap_or_default();
        directories
            .into_iter()
            .filter_map(|directory| quota_in(&directory, unified, &read))
            .collect::<Vec<_>>()
    });
    found.min_by_key(Quota::share)
}

/// The directories of a cgroup and of its parents.
fn directories(mount: Mount<'_>, cgroup: &str) -> Vec<PathBuf> {
    let own = mount.directory_of(cgroup).unwrap_or_else(|| PathBuf::from(mount.point));
    own.ancestors().take_while(|directory| directory.starts_with(mount.point)).map(Path::to_owned).collect()
}

/// The mounted hierarchy with the quotas.
fn mount_of(mounts: &str, unified: bool) -> Option<Mount<'_>> {
    Mount::all(mounts).find(|mount| {
        if unified {
            mount.kind == "cgroup2"
        } else {
            mount.kind == "cgroup" && mount.options.split(',').any(|option| option == "cpu")
        }
    })
}

fn quota_in(directory: &Path, unified: bool, read: impl Fn(&Path) -> Option<String>) -> Option<Quota> {
    let micros = |text: &str| text.trim().parse().ok().map(Duration::from_micros);
    let (time, period) = if unified {
        let text = read(&directory.join("cpu.max"))?;
        let (time, period) = text.split_once(' ')?;
        // "max" is not a number.
        (micros(time)?, micros(period)?)
    } else {
        // −1 is no quota.
        let time = micros(&read(&directory.join("cpu.cfs_quota_us"))?)?;
        (time, micros(&read(&directory.join("cpu.cfs_period_us"))?)?)
    };
    // A quota of a whole processor or more throttles only what uses more.
    (time < period).then_some(Quota { time, period })
}

/// A watchdog woke up 87 ms late on two cores with 64 busy loops.
const MARGIN_LEAST: Duration = Duration::from_millis(150);

/// For each step of nice: twice the lateness measured at nice 19.
const PER_NICE: Duration = Duration::from_millis(100);

/// A guard of this class waits for every other process.
const IDLE: Duration = Duration::from_secs(5);

/// Processor time that a guard needs to find and kill a tree.
const SWEEP: Duration = Duration::from_millis(10);

/// Priorities that CAP_SYS_NICE and common settings of RLIMIT_NICE allow.
const PRIORITIES: [i32; 4] = [-20, -10, -1, 0];

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                          36 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    fn at(class: Class, quota: Option<Quota>) -> Schedule {
        Schedule { class, quota }
    }

    #[test]
    fn a_guard_that_is_scheduled_last_gets_a_longer_margin() {
        assert_eq!(at(Class::Nice(-20), None).margin(), MARGIN_LEAST);
        assert_eq!(at(Class::Nice(0), None).margin(), MARGIN_LEAST);
        assert!(at(Class::Nice(19), None).margin() > Duration::from_secs(2));
        assert!(at(Class::Idle, None).margin() > Duration::from_secs(5));
        let quota = Quota { time: Duration::from_millis(2), period: Duration::from_millis(100) };
        let throttled = at(Class::Nice(0), Some(quota));
        assert!(throttled.margin() > Duration::from_millis(450), "{:?}", throttled.margin());
        assert_eq!(throttled.to_string(), "at nice 0, with 2ms of processor time in each 100ms");
        assert!(throttled.is_slow() && !at(Class::Nice(0), None).is_slow());
    }

    #[test]
    fn the_class_is_read_behind_a_name_with_brackets() {
        let stat = |nice: i32, policy: i32| {
            format!(
                "7 (a) R 1 (b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 {nice} 1 0 5 {}{policy} 0",
                "0 ".repeat(18)
            )
        };
        assert_eq!(class_of(stat(7, 0).as_bytes()), Class::Nice(7));
        assert_eq!(class_of(stat(0, 5).as_bytes()), Class::Idle);
        assert_eq!(class_of(stat(0, 1).as_bytes()), Class::RealTime);
        assert_eq!(class_of(b""), Class::Nice(0));
    }

    #[test]
    fn the_smallest_quota_above_a_process_counts() {
        let files = |path: &Path| -> Option<String> {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/pod/cpu.max" => "20000 100000\n",
                "/sys/fs/cgroup/pod/box/cpu.max" => "max 100000\n",
                "/sys/fs/cgroup/cpu/old/cpu.cfs_quota_us" => "2000\n",
                "/sys/fs/cgroup/cpu/old/cpu.cfs_period_us" => "100000\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us" => "-1\n",
                "/sys/fs/cgroup/wide/cpu.max" => "400000 100000\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let millis = Duration::from_millis;
        let find = |own: &str| quota(MOUNTS, own, files);
        assert_eq!(find("0::/pod/box\n"), Some(Quota { time: millis(20), period: millis(100) }));
        assert_eq!(find("0::/wide\n"), None, "more than one processor");
        assert_eq!(find("1:cpu:/old\n0::/\n"), Some(Quota { time: millis(2), period: millis(100) }));
        assert_eq!(find("1:cpu:/\n0::/\n"), None);
    }

    #[test]
    fn the_priority_of_this_process_is_unchanged() {
        let before = rustix::process::getpriority_process(None).unwrap();
        Schedule::of_the_guards(&CgroupTexts::read());
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), before);
    }

    #[test]
    fn a_priority_is_raised_and_never_lowered() {
        assert_eq!(priorities_to_try(19).collect::<Vec<_>>(), [-20, -10, -1, 0]);
        assert_eq!(priorities_to_try(-5).collect::<Vec<_>>(), [-20, -10]);
        assert_eq!(priorities_to_try(-20).count(), 0);
    }
}
