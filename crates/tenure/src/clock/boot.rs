use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tenure_store::BoxFuture;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Clock, Domain, Instant, WallTime};

#[cfg(not(target_os = "linux"))]
compile_error!(
    "tenure needs CLOCK_BOOTTIME and timerfd, which only Linux has: a clock that stops while the machine is \
     suspended would let two holders act at once"
);

/// The machine's clock: `CLOCK_BOOTTIME`, which counts through suspend.
///
/// `std::time::Instant` and tokio's timers stop during suspend, so a holder on a suspended laptop would wake up with an
/// old belief. Here both reading and sleeping use the boot-time clock.
///
/// [`sleep_until`](Clock::sleep_until) must be polled inside a tokio runtime with io enabled, and with time enabled for
/// the case that the process has no file descriptor left.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl BootClock {
    /// The clock. There is only one, and this call is free.
    pub const fn new() -> Self {
        Self
    }

    #[inline]
    fn read() -> Instant {
        let time = clock_gettime(ClockId::Boottime);
        // The kernel counts from boot: never negative, and u64 nanoseconds last for 584 years.
        Instant::from_nanos((time.tv_sec as u64) * NANOS_PER_SEC + time.tv_nsec as u64)
    }
}

impl Clock for BootClock {
    #[inline]
    fn now(&self) -> Instant {
        Self::read()
    }

    fn wall(&self) -> WallTime {
        let time = clock_gettime(ClockId::Realtime);
        // A wall clock may show a time before 1970; 1970 is reported then.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        WallTime::from_millis(seconds * 1_000 + time.tv_nsec as u64 / 1_000_000)
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(sleep_with(at, arm))
    }

    fn domain(&self) -> Option<Domain> {
        Domain::here()
    }
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Longest sleep on a timer that stops during suspend: the largest delay of a wake-up after a resume.
const SLICE: Duration = Duration::from_secs(1);

/// Sleeps on the timer that `arm` creates, at the first poll, inside its runtime. For an instant in the past it creates
/// none.
async fn sleep_with(at: Instant, arm: impl FnOnce(Instant) -> io::Result<AsyncFd<OwnedFd>>) {
    if BootClock::read() >= at {
        return;
    }
    match arm(at) {
        Ok(timer) => sleep_on(&timer, at).await,
        // Typically EMFILE. A wake-up that is late after a suspend is better than none.
        Err(_) => sleep_in_slices(at).await,
    }
}

async fn sleep_on(timer: &AsyncFd<OwnedFd>, at: Instant) {
    // Readiness may be spurious, so the clock decides. The timer is never read, so it stays ready once it has fired.
    while BootClock::read() < at {
        match timer.readable().await {
            Ok(mut ready) if BootClock::read() < at => ready.clear_ready(),
            Ok(_) => return,
            // The runtime shuts down, and drops the tasks that wait for this.
            Err(_) => return sleep_in_slices(at).await,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the fallback of the clock itself: short slices, and the boot-time clock is asked after each"
)]
async fn sleep_in_slices(at: Instant) {
    loop {
        let left = at.since(BootClock::read());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(SLICE)).await;
    }
}

/// A kernel timer on the boot-time clock that fires at `at`, registered with the runtime.
#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that change their descriptor; an OwnedFd cannot"
)]
fn arm(at: Instant) -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let at = Timespec {
        tv_sec: (at.as_nanos() / NANOS_PER_SEC) as i64,
        tv_nsec: (at.as_nanos() % NANOS_PER_SEC) as _,
    };
    let once = Timespec { tv_sec: 0, tv_nsec: 0 };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval: once, it_value: at })?;
    AsyncFd::with_interest(timer, Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ffi::OsStr;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    /// Sleeps until `MOMENT` from now, asserts that it was not too short, and returns the time it took.
    async fn oversleep(sleep: impl AsyncFnOnce(Instant)) -> Duration {
        let at = BootClock.now() + MOMENT;
        sleep(at).await;
        let woke = BootClock.now();
        assert!(woke >= at, "woke at {woke}, which is before {at}");
        woke.since(at)
    }

    #[test]
    fn the_clock_counts_from_boot_and_never_goes_back() {
        let mut last = BootClock.now();
        assert!(last > Instant::default());
        for _ in 0..10_000 {
            let now = BootClock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_clock_agrees_with_the_uptime_of_the_kernel() {
        let before = BootClock.now();
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let after = BootClock.now();
        let uptime: f64 = text.split(' ').next().unwrap().parse().unwrap();
        // `/proc/uptime` counts suspend as the boot-time clock does, and is truncated to hundredths.
        assert!(uptime >= before.as_nanos() as f64 / 1e9 - 0.02, "{uptime} before {before}");
        assert!(uptime <= after.as_nanos() as f64 / 1e9 + 0.02, "{uptime} after {after}");
    }

    /// A test cannot suspend the machine. Where it may, it uses a time namespace that shifts only the boot-time clock.
    #[test]
    fn reads_the_boot_time_clock_and_not_the_one_that_stops_in_suspend() {
        let in_namespace = |program: &OsStr, arguments: &[&str]| {
            let namespace = ["--user", "--map-root-user", "--time", "--boottime", "86400", "--fork", "--"];
            Command::new("unshare").args(namespace).arg(program).args(arguments).output()
        };
        if !in_namespace(OsStr::new("true"), &[]).is_ok_and(|output| output.status.success()) {
            return tenure_testkit::skipped("no time namespaces here");
        }
        let this = std::env::current_exe().unwrap();
        let uptime = "clock::boot::tests::the_clock_agrees_with_the_uptime_of_the_kernel";
        let output = in_namespace(this.as_os_str(), &["--exact", uptime]).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[tokio::test]
    async fn timers_use_the_boot_time_clock_too() {
        let timer = arm(BootClock.now() + MOMENT).unwrap();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", timer.as_raw_fd())).unwrap();
        // CLOCK_BOOTTIME is 7 in the kernel's numbering.
        assert!(info.lines().any(|line| line.trim() == "clockid: 7"), "{info}");
    }

    #[test]
    fn the_wall_clock_shows_a_date_of_this_century() {
        let year_2020 = 1_577_836_800_000;
        let year_2200 = 7_258_118_400_000;
        assert!((year_2020..year_2200).contains(&BootClock.wall().as_millis()));
    }

    #[tokio::test]
    async fn a_sleep_ends_at_its_instant_and_not_before() {
        for _ in 0..5 {
            let late = oversleep(|at| BootClock.sleep_until(at)).await;
            assert!(late < Duration::from_secs(5), "overslept by {late:?}");
        }
    }

    #[tokio::test]
    async fn an_instant_that_has_passed_needs_no_timer() {
        let armed = Cell::new(false);
        let never = |_| {
            armed.set(true);
            Err(io::ErrorKind::Other.into())
        };
        sleep_with(Instant::default(), never).await;
        sleep_with(BootClock.now(), never).await;
        assert!(!armed.get());
    }

    #[test]
    fn a_sleep_needs_a_runtime_only_when_it_is_polled() {
        let sleep = BootClock.sleep_until(BootClock.now() + MOMENT);
        drop(BootClock.sleep_until(BootClock.now() + MOMENT));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(sleep);
    }

    #[tokio::test]
    async fn without_a_free_file_descriptor_a_sleep_still_wakes() {
        let no_descriptor_left = |_| Err(io::Error::from_raw_os_error(24));
        let late = oversleep(|at| sleep_with(at, no_descriptor_left)).await;
        assert!(late < Duration::from_secs(5), "overslept by {late:?}");
    }

    #[tokio::test]
    async fn a_sleep_until_the_end_of_time_waits_and_can_be_dropped() {
        let for_ever = BootClock.sleep_until(Instant::from_nanos(u64::MAX));
        tokio::select! {
            () = for_ever => panic!("the end of time came early"),
            () = BootClock.sleep_until(BootClock.now() + MOMENT) => {}
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_sleepers_all_wake() {
        let start = BootClock.now();
        let sleeps = (0..1_000).map(|n| BootClock.sleep_until(start + Duration::from_micros(n * 20)));
        futures_util::future::join_all(sleeps).await;
        assert!(BootClock.now() >= start + Duration::from_micros(999 * 20));
    }
}
