//! The property test of every fence, on files and logs, and on a fence that checks before it locks.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use tenure_fence::suite::{self, Counts, Plan, Resource, Shown, Writer};

use super::super::super::{Fence, FenceError, FencingToken, Seal};
use super::super::mark::{Content, FenceMark};
use super::super::mark_file::MarkFile;
use super::super::sidecar::{Kind, Sidecar};
use super::super::unfinished::Unfinished;
use super::{FencedFile, FencedLog, Folder};

struct Files(Folder);

impl Resource for Files {
    type Writer = FencedFile;

    async fn writer(&self) -> FencedFile {
        self.0.file()
    }

    async fn shown(&self) -> Vec<Shown> {
        self.0.content().lines().map(shown).collect()
    }
}

impl Writer for FencedFile {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        Fence::write(self, token, Bytes::from(line(token, number))).await
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(Seal::seal(self, token).await)
    }
}

struct Logs(Folder);

impl Resource for Logs {
    type Writer = FencedLog;

    async fn writer(&self) -> FencedLog {
        self.0.log()
    }

    async fn shown(&self) -> Vec<Shown> {
        self.0.content().lines().map(shown).collect()
    }
}

impl Writer for FencedLog {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        Fence::write(self, token, Bytes::from(line(token, number))).await.map(|_| ())
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(Seal::seal(self, token).await)
    }
}

/// A fence that checks the token before it takes the lock.
struct ChecksFirst(Folder);

struct ChecksFirstWriter(PathBuf);

impl Resource for ChecksFirst {
    type Writer = ChecksFirstWriter;

    async fn writer(&self) -> ChecksFirstWriter {
        ChecksFirstWriter(self.0.data())
    }

    async fn shown(&self) -> Vec<Shown> {
        self.0.content().lines().map(shown).collect()
    }
}

impl Writer for ChecksFirstWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let sidecar = Sidecar::new(&self.0, Kind::File);
        let place = sidecar.place()?;
        sidecar.refuse_early(&place, token)?;
        // Here the writer is paused.
        tokio::task::yield_now().await;
        let temporary = Unfinished::create(&place)?;
        temporary.write(line(token, number).as_bytes())?;
        let mark = FenceMark { token: token.clone(), content: Content::File };
        let locked = match MarkFile::lock(&place, Duration::from_secs(1))? {
            Some(locked) => locked,
            None => {
                MarkFile::create(&place, &mark)?;
                MarkFile::lock(&place, Duration::from_secs(1))?.unwrap()
            }
        };
        locked.write(&mark)?;
        place.directory().rename(temporary.name(), place.name()).unwrap();
        temporary.renamed();
        Ok(())
    }

    async fn seal(&mut self, _: &FencingToken) -> Option<Result<(), FenceError>> {
        None
    }
}

fn line(token: &FencingToken, number: u64) -> String {
    format!("{} {number}\n", token.token())
}

fn shown(line: &str) -> Shown {
    let (token, number) = line.split_once(' ').expect("complete lines");
    Shown { token: Some(token.parse().unwrap()), number: number.parse().unwrap() }
}

fn assert_tried(counts: Counts, what: &str) {
    println!("{what}: {counts}");
    assert!(counts.admitted > 0 && counts.refused > 0, "{what}: {counts}");
    assert_eq!(counts.unknown, 0, "{what}: {counts}");
}

#[tokio::test]
async fn no_file_admits_a_smaller_token_after_a_greater_one() {
    let mut total = 0;
    for seed in 0..75 {
        let counts = suite::run(&Files(Folder::new()), Plan::new(seed)).await.unwrap();
        assert_tried(counts, &format!("file, seed {seed}"));
        assert!(counts.crashes > 0, "{counts}");
        total += counts.admitted + counts.refused;
    }
    assert_eq!(total, 75 * 8 * 50);
}

#[tokio::test]
async fn no_log_admits_a_smaller_token_after_a_greater_one_or_loses_an_append() {
    let mut total = 0;
    for seed in 0..75 {
        let counts = suite::run(&Logs(Folder::new()), Plan::new(seed).keeps_all()).await.unwrap();
        assert_tried(counts, &format!("log, seed {seed}"));
        assert!(counts.crashes > 0, "{counts}");
        total += counts.admitted + counts.refused;
    }
    assert_eq!(total, 75 * 8 * 50);
}

/// On the disk, where syncs are slow and ext4 has an order of its own.
#[tokio::test]
async fn files_and_logs_on_a_disk_pass_too() {
    for seed in 100..103 {
        let plan = Plan::new(seed).writers(4).calls(30);
        assert_tried(suite::run(&Files(Folder::on_disk()), plan.clone()).await.unwrap(), "file on a disk");
        assert_tried(suite::run(&Logs(Folder::on_disk()), plan.keeps_all()).await.unwrap(), "log on a disk");
    }
}

#[tokio::test]
async fn a_fence_that_checks_before_it_locks_is_caught() {
    let mut caught = 0;
    for seed in 0..10 {
        caught += u32::from(suite::run(&ChecksFirst(Folder::new()), Plan::new(seed)).await.is_err());
    }
    println!("caught in {caught} of 10 runs");
    assert!(caught > 0);
}
