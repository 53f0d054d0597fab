//! Says which commit is being built, for `tenure --version`.
//!
//! Whatever is not as expected (no git, no checkout, a crate from an archive, one that was copied into the repository of
//! somebody else) leaves the version alone, and never fails the build.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo says which version it builds");
    let version = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo:rustc-env=TENURE_VERSION={version}");
}

/// The commit, and whether something was changed since; `None` where this is no checkout of our own repository.
fn commit() -> Option<String> {
    // Git looks upwards, and would find the repository that this crate was copied into.
    if git(&["rev-parse", "--show-prefix"])? != "crates/tenure-cli/" {
        return None;
    }
    for path in what_tells() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    git(&["describe", "--always", "--abbrev=10", "--dirty", "--exclude=*"])
}

/// The files that change when the answer does. One that is missing is not named: cargo would build anew each time.
fn what_tells() -> Vec<PathBuf> {
    let absolute = |what| git(&["rev-parse", "--path-format=absolute", what]).map(PathBuf::from);
    // In a worktree there are two: HEAD is its own, and the branches are shared.
    let own = absolute("--git-dir").unwrap_or_default();
    let shared = absolute("--git-common-dir").unwrap_or_else(|| own.clone());
    let mut paths =
        vec![own.join("HEAD"), own.join("logs/HEAD"), shared.join("packed-refs"), shared.join("reftable")];
    paths.extend(git(&["symbolic-ref", "--quiet", "HEAD"]).map(|branch| shared.join(branch)));
    // What is built in has to be looked at too, or the answer would not know that it was changed.
    for name in ["Cargo.toml", "Cargo.lock"] {
        paths.push(Path::new("../..").join(name));
    }
    for one in std::fs::read_dir("..").into_iter().flatten().flatten() {
        paths.extend([one.path().join("src"), one.path().join("Cargo.toml")]);
    }
    paths.retain(|path| path.exists());
    paths
}

/// What git answers, if there is one and it has an answer.
fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Under a hook, these name the repository that the hook is for.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    let output = command.args(args).output().ok().filter(|output| output.status.success())?;
    let answer = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!answer.is_empty()).then_some(answer)
}
