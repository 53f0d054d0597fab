//! The command as `cargo install` builds it. All other tests have a build with every store, because their dependencies
//! enable the features.

use std::path::Path;
use std::process::{Command, Output};

#[test]
fn the_default_build_supports_a_directory_and_names_the_feature_that_a_bucket_needs() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("default-build");
    // A separate target directory, so that the binary of the other tests stays unchanged. Debug information would
    // double its size.
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--bin", "tenure", "--target-dir"])
        .arg(directory.join("target"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .unwrap();
    assert!(built.success(), "the default build does not compile");

    let leases = directory.join("leases");
    let _ = std::fs::remove_dir_all(&leases);
    let url = format!("file://{}", leases.display());
    let tenure = |store: &str, words: &[&str]| {
        let mut command = Command::new(directory.join("target/debug/tenure"));
        // Remembered verdicts stay in the directory of the test.
        command.env("TENURE_STORE", store).env("XDG_STATE_HOME", &directory).args(words).output().unwrap()
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();

    let Output { status, stdout, stderr } =
        tenure(&url, &["run", "x", "--quiet", "--", "sh", "-c", "echo $TENURE_NAME"]);
    assert_eq!((status.code(), text(stdout).as_str(), text(stderr).as_str()), (Some(0), "x\n", ""));
    let Output { status, stdout, .. } = tenure(&url, &["store", "guarantees"]);
    assert!(status.success() && text(stdout).contains("one machine"));

    for (url, feature) in [("s3://bucket/prefix", "s3"), ("az://container/prefix", "az")] {
        let Output { status, stderr, .. } = tenure(url, &["status", "x"]);
        let sentence = format!(
            "tenure: TENURE_STORE: {feature}: stores are not built into this version, which has file:///path: build it \
             with the feature {feature}, as by cargo install --locked --path crates/tenure-cli --features {feature}\n"
        );
        assert_eq!((status.code(), text(stderr)), (Some(64), sentence));
    }
}
