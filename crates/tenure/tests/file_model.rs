//! A power cut at any point, on a small model of the disk, for the calls that the store really makes.
//!
//! Unsynced data may be on disk or not, in any combination: any subset of the changes of the directory, and none, some
//! or all bytes of a file. That is weaker than any real file system, and all that POSIX promises.

mod file_support;

use tenure_store::Expect;

use file_support::{Puppet, Scratch, Strace, be_a_puppet, block_on, calls, key, write};

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    be_a_puppet();
}

/// Effect of a system call of a write on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A new file, under a temporary name.
    Create,
    /// Its bytes.
    Write,
    SyncFile,
    /// The entry becomes the new file.
    Rename,
    SyncDirectory,
}

/// Possible contents under the name of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Old,
    Empty,
    Half,
    New,
}

/// All possible contents after a power cut that follows these steps.
fn after_a_power_cut(steps: &[Step]) -> Vec<Found> {
    let mut bytes = vec![Found::Empty];
    let (mut pending, mut entry_is_new) = (0_u32, false);
    let mut renamed_at = None;
    for step in steps {
        match step {
            Step::Create => pending += 1,
            Step::Write => bytes = vec![Found::Empty, Found::Half, Found::New],
            Step::SyncFile => bytes.retain(|bytes| *bytes == bytes_now(steps)),
            Step::Rename => {
                renamed_at = Some(pending);
                pending += 1;
            }
            Step::SyncDirectory => {
                entry_is_new |= renamed_at.take().is_some();
                pending = 0;
            }
        }
    }
    let mut found = Vec::new();
    for subset in 0..1_u32 << pending {
        let renamed = entry_is_new || renamed_at.is_some_and(|at| subset & (1 << at) != 0);
        if renamed { found.extend(&bytes) } else { found.push(Found::Old) }
    }
    found.sort();
    found.dedup();
    found
}

/// Contents of the new file for the running system.
fn bytes_now(steps: &[Step]) -> Found {
    if steps.contains(&Step::Write) { Found::New } else { Found::Empty }
}

/// The reason why this order of steps is not safe; `None` if it is safe. The answer follows the last step.
fn flaw(steps: &[Step]) -> Option<String> {
    for done in 0..=steps.len() {
        let found = after_a_power_cut(&steps[..done]);
        if let Some(broken) = found.iter().find(|found| [Found::Empty, Found::Half].contains(found)) {
            return Some(format!("after {:?} the entry may be {broken:?}", &steps[..done]));
        }
    }
    let found = after_a_power_cut(steps);
    (found != [Found::New]).then(|| format!("an acknowledged write may be lost: {found:?}"))
}

const RIGHT: [Step; 5] = [Step::Create, Step::Write, Step::SyncFile, Step::Rename, Step::SyncDirectory];

#[test]
fn the_model_finds_a_flaw_in_every_other_order() {
    assert_eq!(flaw(&RIGHT), None);
    let without = |step| RIGHT.into_iter().filter(|other| *other != step).collect::<Vec<_>>();
    assert!(flaw(&without(Step::SyncFile)).unwrap().contains("Empty"), "the empty file after a power cut");
    assert!(flaw(&without(Step::SyncDirectory)).unwrap().contains("lost"));
    assert!(flaw(&without(Step::Rename)).unwrap().contains("lost"));
    let mut swapped = RIGHT;
    swapped.swap(2, 3);
    assert!(flaw(&swapped).unwrap().contains("may be"), "renamed before it was synced");
    let mut early = RIGHT;
    early.swap(3, 4);
    assert!(flaw(&early).unwrap().contains("lost"), "the directory was synced before the rename");
    let mut sync_then_write = RIGHT;
    sync_then_write.swap(1, 2);
    assert!(flaw(&sync_then_write).is_some());
}

/// The steps of a write, from the log of strace.
fn steps(log: &str, directory: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for call in calls(log) {
        let line = &call.line;
        let step = match call.name.as_str() {
            "openat" if line.contains(".tmp\"") && line.contains("O_CREAT|") => Step::Create,
            "write" if line.contains(".tmp>") => Step::Write,
            "fsync" if line.contains(".tmp>") => Step::SyncFile,
            name if name.starts_with("rename") && line.contains("k.entry") => Step::Rename,
            "fsync" if line.contains(&format!("<{directory}>")) => Step::SyncDirectory,
            _ => continue,
        };
        assert!(line.contains(" = 0") || !matches!(step, Step::SyncFile | Step::SyncDirectory), "{line}");
        steps.push(step);
    }
    steps
}

#[test]
fn a_power_cut_at_any_point_leaves_the_old_entry_or_the_new_and_no_acknowledged_write_is_lost() {
    if !Strace::is_there() {
        return;
    }
    for replace in [false, true] {
        let scratch = Scratch::new("model");
        let store = scratch.store();
        let expect = if replace {
            block_on(write(&store, &key("k"), "old", Expect::Absent)).to_string()
        } else {
            "-".to_owned()
        };
        let mut puppet = Puppet::start(&scratch.0);
        let strace = Strace::attach(&puppet, &[]);
        assert!(puppet.put("k", "new", &expect).unwrap().starts_with("applied"));
        let steps = steps(&strace.detach(), scratch.0.to_str().unwrap());
        assert_eq!(steps, RIGHT, "the model knows every step");
        assert_eq!(flaw(&steps), None);
        let states: usize = (0..=steps.len()).map(|done| after_a_power_cut(&steps[..done]).len()).sum();
        println!("replace: {replace}, {} cuts, {states} different states, none broken", steps.len() + 1);
    }
}
