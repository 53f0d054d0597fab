//! Cost of a fenced write, next to the bare conditional write of the same content in the same run: in memory, on the file
//! store, and on MinIO.
//!
//! Times are printed and never asserted, because they depend on the machine. Compare the ratios.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tenure::Coordinator;
use tenure::fence::{FencedValue, FencingToken};
use tenure::store::{File, Memory};
use tenure_object::{Environment, S3};
use tenure_store::{Applied, Expect, Put, Store, Version};
use tenure_testkit::{Kind, Samples, Server, key, print_ratio};

fn main() {
    println!("{}", Samples::heading());
    tenure_testkit::block_on(async {
        compare("in memory", Arc::new(Memory::new()), 2000, None).await;
        let directory = Directory::new();
        let file = File::open(directory.0.join("store")).unwrap();
        compare("on the file store", Arc::new(file), 300, Some(1.3)).await;
        let Some(server) = Server::start_or_skip(Kind::Minio) else { return };
        server.create_bucket("bench");
        let builder = S3::builder("bench").endpoint(&server.endpoint()).region(server.region());
        let builder = builder.keys(server.access_key(), server.secret_key()).write_interval(Duration::ZERO);
        let store = builder.exact_names().open_in(&Environment::default()).unwrap();
        compare("on MinIO", Arc::new(store), 300, Some(1.3)).await;
    });
}

async fn compare(place: &str, store: Arc<dyn Store>, rounds: usize, goal: Option<f64>) {
    let mut bare = Bare { store: Arc::clone(&store), version: None };
    let value = FencedValue::on(Arc::clone(&store), key("fenced"));
    let coordinator = Coordinator::connect(Arc::clone(&store)).await.unwrap();
    let kept = coordinator.fenced("fenced").unwrap();
    let token: FencingToken = "bench=7".parse().unwrap();
    let mut put = Samples::new("a bare conditional write");
    let mut warm = Samples::new("a fenced write, warm");
    let mut cold = Samples::new("a fenced write, cold");
    let mut through = Samples::new("a fenced write, warm, through the keeper");
    bare.replace().await;
    for value in [&value, &kept] {
        value.write(&token, CONTENT).await.unwrap();
    }
    for round in 0..rounds {
        // Interleaved and in turns, so that other load on the machine affects all of them equally.
        if round % 2 == 0 {
            put.take_async(bare.replace()).await;
            warm.take_async(value.write(&token, CONTENT)).await.unwrap();
        } else {
            warm.take_async(value.write(&token, CONTENT)).await.unwrap();
            put.take_async(bare.replace()).await;
        }
        through.take_async(kept.write(&token, CONTENT)).await.unwrap();
        if round % 5 == 0 {
            // This handle has never seen the value, and writes another one.
            let stranger = FencedValue::on(Arc::clone(&store), key("cold"));
            cold.take_async(stranger.write(&token, CONTENT)).await.unwrap();
        }
    }
    println!("\n{place}\n{put}\n{warm}\n{through}\n{cold}");
    print_ratio(&format!("fenced {place}, warm, to a bare write"), warm.at(50), put.at(50), goal);
    print_ratio(&format!("fenced {place}, cold, to a bare write"), cold.at(50), put.at(50), None);
}

/// A store without a fence.
struct Bare {
    store: Arc<dyn Store>,
    version: Option<Version>,
}

impl Bare {
    async fn replace(&mut self) {
        let expect = self.version.take().map_or(Expect::Absent, Expect::Version);
        match self.store.put(&key("bare"), CONTENT, expect).await {
            Ok(Put::Applied(Applied { version, .. })) => self.version = Some(version),
            other => panic!("{other:?}"),
        }
    }
}

/// A directory on the disk of the target directory; deleted when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-fenced-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const CONTENT: Bytes = Bytes::from_static(&[b'x'; 4096]);
