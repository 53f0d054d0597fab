use std::collections::HashMap;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::stat::Stat;

/// All descendants of a process. It is a sub-reaper, so none of them can escape: a process that leaves its group or
/// session, or loses its parent, is still found below it.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: Pid,
    except: Option<Pid>,
    /// Children of the root that do not belong to the tree, with everything below them.
    strangers: Vec<Pid>,
}

/// Result of a signal to a complete tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Swept {
    /// The processes that got it.
    pub(super) reached: Vec<Pid>,
    /// Processes that may not be signalled: they run as another user.
    pub(super) denied: Vec<Pid>,
}

/// One process as `/proc` shows it.
#[derive(Clone, Copy, Debug)]
struct ProcessStat {
    parent: i32,
    /// In ticks since boot. With the process id it identifies one process.
    started: u64,
    /// Dead and not yet reaped, and without a living thread.
    is_dead: bool,
    /// Stopped by a signal.
    is_stopped: bool,
}

impl Tree {
    pub(super) fn below(root: Pid) -> Self {
        Self { root, except: None, strangers: Vec::new() }
    }

    /// The same tree without this process, but with everything below it.
    pub(super) fn without(self, except: Pid) -> Self {
        Self { except: Some(except), ..self }
    }

    /// The same tree without these processes and everything below them.
    pub(super) fn without_strangers(self, strangers: &[Pid]) -> Self {
        Self { strangers: strangers.to_owned(), ..self }
    }

    /// The children of all threads of this process; `None` if the kernel does not list them.
    pub(super) fn own_children() -> Option<Vec<Pid>> {
        let mut children = Vec::new();
        for thread in fs::read_dir("/proc/self/task").ok()? {
            let listed = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
            children
                .extend(listed.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
        }
        Some(children)
    }

    /// True if `/proc` shows the pid namespace of this process. Otherwise the numbers there belong to other processes.
    pub(super) fn can_be_seen() -> bool {
        let own = rustix::process::getpid().as_raw_nonzero().to_string();
        fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == own.as_str())
    }

    /// Does the work of a sweep without its signals: a guard with little processor time measures how long it takes.
    pub(super) fn rehearse(&self) {
        let _ = scan().map(|all| self.members(&all));
    }

    /// Sends TERM to each process of the tree. Stopped ones are continued, or they could not end.
    pub(super) fn terminate(&self) -> Swept {
        self.signal(Signal::TERM).unwrap_or_default()
    }

    /// Kills each process of the tree. The next call finds those that were forked during this one.
    pub(super) fn kill(&self) -> Swept {
        self.signal(Signal::KILL).unwrap_or_default()
    }

    /// One by one and not by group: `kill(-group)` succeeds although it leaves out a member that runs as another user,
    /// and never reaches processes that left the group.
    fn signal(&self, signal: Signal) -> io::Result<Swept> {
        let all = scan()?;
        let mut swept = Swept::default();
        for (number, seen) in self.members(&all) {
            let Some(pid) = Pid::from_raw(number) else { continue };
            // The process id may be reused by now. An open descriptor stays with one process: check again after opening it.
            let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let still = read_stat(number).is_some_and(|now| {
                now.started == seen.started && (now.parent == seen.parent || all.contains_key(&now.parent))
            });
            if !still {
                continue;
            }
            match pidfd_send_signal(&descriptor, signal) {
                Ok(()) => {
                    swept.reached.push(pid);
                    if seen.is_stopped {
                        let _ = pidfd_send_signal(&descriptor, Signal::CONT);
                    }
                }
                Err(Errno::PERM) if !seen.is_dead => swept.denied.push(pid),
                Err(_) => {}
            }
        }
        Ok(swept)
    }

    fn members(&self, all: &HashMap<i32, ProcessStat>) -> Vec<(i32, ProcessStat)> {
        let mut children: HashMap<i32, Vec<(i32, ProcessStat)>> = HashMap::new();
        for (&number, &seen) in all {
            children.entry(seen.parent).or_default().push((number, seen));
        }
        let mut found = Vec::new();
        let mut parents = vec![self.root.as_raw_nonzero().get()];
        while let Some(parent) = parents.pop() {
            for (number, seen) in children.remove(&parent).unwrap_or_default() {
                let pid = Pid::from_raw(number);
                if pid.is_some_and(|pid| self.strangers.contains(&pid)) {
                    continue;
                }
                parents.push(number);
                if pid != self.except {
                    found.push((number, seen));
                }
            }
        }
        found
    }
}

/// All processes of this pid namespace. Those that end during the listing are left out.
fn scan() -> io::Result<HashMap<i32, ProcessStat>> {
    let mut all = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        if let Some(number) = name.to_str().and_then(|name| name.parse().ok())
            && let Some(seen) = read_stat(number)
        {
            all.insert(number, seen);
        }
    }
    Ok(all)
}

fn read_stat(number: i32) -> Option<ProcessStat> {
    parse(&fs::read(format!("/proc/{number}/stat")).ok()?)
}

fn parse(stat: &[u8]) -> Option<ProcessStat> {
    let stat = Stat::parse(stat)?;
    let (state, threads) = (stat.text(3)?, stat.value::<u64>(20)?);
    Some(ProcessStat {
        parent: stat.value(4)?,
        started: stat.value(22)?,
        is_dead: matches!(state, "Z" | "X") && threads <= 1,
        is_stopped: state == "T",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(parent: i32) -> ProcessStat {
        ProcessStat { parent, started: 1, is_dead: false, is_stopped: false }
    }

    #[test]
    fn a_tree_has_all_processes_below_its_root_except_the_excluded_one() {
        let all =
            HashMap::from([(10, seen(1)), (20, seen(10)), (30, seen(20)), (40, seen(30)), (50, seen(1))]);
        let pid = |number| Pid::from_raw(number).unwrap();
        let numbers = |tree: Tree| {
            let mut numbers: Vec<_> = tree.members(&all).into_iter().map(|(number, _)| number).collect();
            numbers.sort();
            numbers
        };
        assert_eq!(numbers(Tree::below(pid(10))), [20, 30, 40]);
        assert_eq!(numbers(Tree::below(pid(10)).without(pid(20))), [30, 40]);
        assert_eq!(numbers(Tree::below(pid(1)).without_strangers(&[pid(10)])), [50]);
        assert!(numbers(Tree::below(pid(50))).is_empty());
    }

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_a_process() {
        let stat = b"7 (a) R 1 (b) S 42 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 123456 0 0\n";
        let seen = parse(stat).unwrap();
        assert_eq!((seen.parent, seen.started, seen.is_dead), (42, 123_456, false));
        let zombie = b"7 (x) Z 42 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 0 0\n";
        assert!(parse(zombie).unwrap().is_dead);
        assert!(parse(b"7 (x").is_none() && parse(b"7 (x) S").is_none());
    }

    #[test]
    fn this_process_is_found_in_proc() {
        assert!(Tree::can_be_seen());
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(scan().unwrap().contains_key(&own));
    }
}
