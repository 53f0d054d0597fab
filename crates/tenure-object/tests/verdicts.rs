//! A bucket that passed the check is not checked again, and any number of clients that start at once check it without
//! mistaking each other's writes for a broken promise.

mod bucket;

use std::path::PathBuf;

use bucket::Bucket;
use futures_util::future::join_all;
use tenure::{Coordinator, Verdicts};
use tenure_object::Environment;
use tenure_object::S3;
use tenure_store::Store;
use tenure_testkit::Kind as Server;

/// A directory for verdicts, which is deleted on drop.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("tenure-verdicts-{name}-{}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// Number of GET and PUT requests to connect.
    async fn cost(&self, store: S3) -> (u64, u64) {
        let verdicts = Verdicts::in_directory(&self.0);
        Coordinator::builder().verdicts(verdicts).connect(store.clone()).await.unwrap();
        let requests = store.requests();
        (requests.gets, requests.puts)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn to_connect_costs_five_requests_and_then_none() {
    let Some(bucket) = Bucket::on(Server::Minio, "verdicts") else { return };
    let directory = Directory::new("costs");
    assert_eq!(directory.cost(bucket.store()).await, (4, 3), "once in the life of a store");
    assert_eq!(directory.cost(bucket.store()).await, (0, 0));
    let elsewhere = bucket.builder_at_the_top().prefix("other").open_in(&Environment::default()).unwrap();
    assert_eq!(directory.cost(elsewhere).await, (4, 3), "another prefix, for which another policy may hold");
    let bare = bucket.builder().bare_etags().open_in(&Environment::default()).unwrap();
    assert_eq!(directory.cost(bare).await, (3, 2), "conditions that are sent in another form");
    Verdicts::in_directory(&directory.0).forget(&bucket.store().identity().place.unwrap()).unwrap();
    assert_eq!(directory.cost(bucket.store()).await, (3, 2), "it was forgotten");
}

#[test]
fn a_place_names_no_secret() {
    let store = S3::builder("bucket").prefix("locks").region("eu-west-1").keys("id", "hush");
    let place = store.open_in(&Environment::default()).unwrap().identity().place.unwrap();
    assert_eq!(place, "s3://bucket/locks?region=eu-west-1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_that_start_at_once_pass_its_check() {
    let Some(bucket) = Bucket::on(Server::Minio, "crowd") else { return };
    let directory = Directory::new("crowd");
    let connecting = (0..200).map(|_| {
        let builder = Coordinator::builder().verdicts(Verdicts::in_directory(&directory.0));
        builder.connect(bucket.store())
    });
    let refused: Vec<_> = join_all(connecting).await.into_iter().filter_map(Result::err).collect();
    assert!(refused.is_empty(), "{} refused: {}", refused.len(), refused[0]);
    assert_eq!(directory.cost(bucket.store()).await, (0, 0));
}
