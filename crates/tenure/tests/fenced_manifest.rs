//! Many objects under one fence.

use std::sync::Arc;

use bytes::Bytes;
use tenure::fence::{FenceError, FencedManifest, FencingToken, ManifestEntry};
use tenure::store::Memory;
use tenure::store::memory::PutFault;
use tenure::{Coordinator, ErrorKind, Key};
use tenure_fence::suite::{self, Plan, Resource, Shown, Writer};
use tenure_testkit::key;

#[tokio::test]
async fn readers_see_exactly_the_objects_that_the_manifest_names() {
    let (_, table) = in_memory();
    assert_eq!(table.read().await.unwrap(), None);
    let first = table.put(&token(7), "a.csv", "1").await.unwrap();
    let second = table.put(&token(7), "deep/b.csv", "2").await.unwrap();
    assert_eq!(table.read().await.unwrap(), None, "nothing is committed");
    table.commit(&token(7), &[first.clone(), second.clone()]).await.unwrap();
    let manifest = table.read().await.unwrap().unwrap();
    assert_eq!((&manifest.token, &manifest.entries), (&token(7), &vec![first, second]));
    assert_eq!(table.get(manifest.entry("deep/b.csv").unwrap()).await.unwrap(), "2");
}

#[tokio::test]
async fn a_stale_writers_objects_are_garbage_that_no_reader_sees() {
    let (memory, table) = in_memory();
    let kept = table.put(&token(7), "a", "kept").await.unwrap();
    let replaced = table.put(&token(7), "b", "replaced").await.unwrap();
    table.commit(&token(7), &[kept.clone(), replaced.clone()]).await.unwrap();
    let paused = FencedManifest::on(Arc::new(memory.clone()), key("tables/sales")).unwrap();
    let late = paused.put(&token(7), "c", "late").await.unwrap();

    // The new holder seals: from now on, the objects of the old one that are not named are garbage.
    table.seal(&token(8)).await.unwrap();
    assert_eq!(table.garbage().await.unwrap(), [object(&late)]);
    assert!(paused.commit(&token(7), &[kept.clone(), late.clone()]).await.unwrap_err().is_stale());

    let newer = table.put(&token(8), "b", "newer").await.unwrap();
    assert_eq!(table.garbage().await.unwrap(), [object(&late)], "the holder's own objects are never garbage");
    table.commit(&token(8), &[kept, newer]).await.unwrap();
    let mut garbage = [object(&late), object(&replaced)];
    garbage.sort();
    assert_eq!(table.garbage().await.unwrap(), garbage);
    let manifest = table.read().await.unwrap().unwrap();
    assert_eq!(manifest.entries.iter().map(ManifestEntry::part).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(table.get(manifest.entry("b").unwrap()).await.unwrap(), "newer");
}

#[tokio::test]
async fn a_commit_names_only_its_own_objects_and_those_of_the_present_manifest() {
    let (_, table) = in_memory();
    let dropped = table.put(&token(7), "a", "1").await.unwrap();
    table.commit(&token(7), std::slice::from_ref(&dropped)).await.unwrap();
    table.commit(&token(8), &[]).await.unwrap();
    let later = table.put(&token(9), "b", "2").await.unwrap();
    for (entries, word) in [
        (vec![dropped], "the present manifest does not name it"),
        (vec![later.clone()], "a newer token"),
        (vec![later.clone(), later], "twice"),
    ] {
        let error = table.commit(&token(8), &entries).await.unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(tenure::Error::from(error).kind(), ErrorKind::Invalid);
    }
    for part in ["", "../a", "a//b", &"x".repeat(190)] {
        let error = table.put(&token(8), part, "x").await.unwrap_err();
        assert_eq!(tenure::Error::from(error).kind(), ErrorKind::Invalid, "{part}");
    }
}

#[tokio::test]
async fn a_data_object_whose_answer_was_lost_is_created_once() {
    for fault in [PutFault::LoseAnswer, PutFault::LoseRequest, PutFault::Twice] {
        let (memory, table) = in_memory();
        memory.faults().next_put(fault);
        let entry = table.put(&token(7), "a", "content").await.unwrap();
        table.commit(&token(7), std::slice::from_ref(&entry)).await.unwrap();
        assert_eq!(table.get(&entry).await.unwrap(), "content", "{fault:?}");
        assert_eq!(memory.contents(&object(&entry)).unwrap(), "content", "as it was given");
    }
}

#[tokio::test]
async fn a_missing_data_object_is_an_error_and_not_an_empty_one() {
    let (memory, table) = in_memory();
    let entry = table.put(&token(7), "a", "").await.unwrap();
    assert_eq!(table.get(&entry).await.unwrap(), "");
    memory.delete(&object(&entry));
    let error = table.get(&entry).await.unwrap_err();
    assert!(error.to_string().contains("is missing"), "{error}");
    memory.overwrite(&object(&entry), Bytes::from("foreign"));
    assert!(matches!(table.get(&entry).await.unwrap_err(), FenceError::Foreign { .. }));
}

#[tokio::test]
async fn a_lease_commits_through_its_fence() {
    let (memory, table) = in_memory();
    let tenure = Coordinator::connect(memory).await.unwrap();
    let lease = tenure.lease("job").unwrap().acquire().await.unwrap();
    lease.fenced(&table).seal().await.unwrap();
    let entry = table.put(lease.fencing_token(), "a", "1").await.unwrap();
    lease.fenced(&table).write(&[entry]).await.unwrap();
    assert_eq!(table.read().await.unwrap().unwrap().token, *lease.fencing_token());
    lease.release().await.unwrap();
}

#[tokio::test]
async fn the_suite() {
    for seed in 0..10 {
        let counts = suite::run(&Tables(Memory::new()), Plan::new(seed)).await.unwrap();
        assert!(counts.admitted > 100 && counts.refused > 10, "{counts}");
    }
}

struct Tables(Memory);

struct TableWriter(FencedManifest);

impl Resource for Tables {
    type Writer = TableWriter;

    async fn writer(&self) -> TableWriter {
        TableWriter(FencedManifest::on(Arc::new(self.0.clone()), key("tables/sales")).unwrap())
    }

    async fn shown(&self) -> Vec<Shown> {
        let table = self.writer().await.0;
        let Some(manifest) = table.read().await.unwrap() else { return Vec::new() };
        let content = table.get(&manifest.entries[0]).await.unwrap();
        let number = std::str::from_utf8(&content).unwrap().parse().unwrap();
        vec![Shown { token: Some(manifest.token.token()), number }]
    }
}

impl Writer for TableWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let entry = self.0.put(token, "number", number.to_string()).await?;
        tokio::task::yield_now().await;
        self.0.commit(token, &[entry]).await
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(self.0.seal(token).await)
    }
}

fn in_memory() -> (Memory, FencedManifest) {
    let memory = Memory::new();
    let table = FencedManifest::on(Arc::new(memory.clone()), key("tables/sales")).unwrap();
    (memory, table)
}

fn object(entry: &ManifestEntry) -> Key {
    key(&format!("tables/sales/{}", entry.object()))
}

fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}
