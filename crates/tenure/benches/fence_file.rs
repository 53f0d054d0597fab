//! Cost of a fenced write to a file, next to the same bare durable write in the same run.
//!
//! Times are printed and never asserted, because they depend on the machine. Compare the ratios.
//!
//! A put under a token that this handle has put on the disk needs no sync of the mark. An append needs the mark on the disk
//! before the bytes, because the next writer repairs a torn append by it: on ext4 that is a write without a flush, elsewhere
//! a second sync.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use tenure::fence::{FencedFile, FencedLog, FencingToken};
use tenure_testkit::{Samples, print_ratio};

fn main() {
    println!("{}", Samples::heading());
    for bytes in [100, 64 << 10] {
        println!("\nwith {bytes} bytes");
        put(&vec![b'x'; bytes]);
        append(&vec![b'x'; bytes]);
    }
}

fn put(bytes: &[u8]) {
    let directory = Directory::new("put");
    let (bare, fenced) = (directory.0.join("bare"), FencedFile::new(directory.0.join("fenced")));
    let other = FencedFile::new(directory.0.join("other"));
    let mut plain = Samples::new("a bare durable replace");
    let mut same = Samples::new("put, the same token again");
    let mut next = Samples::new("put, each under a new token");
    let held = token(1);
    for round in 0..ROUNDS {
        // Interleaved, so that other load on the machine affects all of them.
        plain.take(|| replace(&directory.0, &bare, bytes));
        same.take(|| fenced.put_blocking(&held, bytes).unwrap());
        let newer = token(round + 1);
        next.take(|| other.put_blocking(&newer, bytes).unwrap());
    }
    println!("{plain}\n{same}\n{next}");
    print_ratio("put, to a bare durable replace", same.at(50), plain.at(50), Some(1.3));
    print_ratio("put under a new token, to a bare durable replace", next.at(50), plain.at(50), None);
}

fn append(bytes: &[u8]) {
    let directory = Directory::new("append");
    let log = FencedLog::new(directory.0.join("fenced"));
    let mut file = OpenOptions::new().create(true).append(true).open(directory.0.join("bare")).unwrap();
    let mut plain = Samples::new("a bare durable append");
    let mut fenced = Samples::new("append");
    let held = token(1);
    for _ in 0..ROUNDS {
        plain.take(|| {
            file.write_all(bytes).unwrap();
            file.sync_data().unwrap();
        });
        fenced.take(|| log.append_blocking(&held, bytes).unwrap());
    }
    println!("{plain}\n{fenced}");
    print_ratio("append, to a bare durable append", fenced.at(50), plain.at(50), Some(1.3));
}

/// Writes a new file, syncs it, renames it, and syncs the directory.
fn replace(directory: &Path, path: &Path, bytes: &[u8]) {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    fs::rename(&temporary, path).unwrap();
    File::open(directory).unwrap().sync_all().unwrap();
}

fn token(number: u64) -> FencingToken {
    format!("bench={number}").parse().unwrap()
}

/// A directory on the disk of the build, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("tenure-bench-fence-{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ROUNDS: u64 = 300;
