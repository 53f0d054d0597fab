//! Determines the commit of the build, for `tenure --version`.
//!
//! Anything unexpected leaves the version alone and never fails the build: no git, no checkout, a crate from an
//! archive, or a crate copied into another repository.

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

/// The commit, marked if the checkout has changes; `None` outside a checkout of the Tenure repository.
fn commit() -> Option<String> {
    // Git searches parent directories, and would find the repository that this crate was copied into.
    if git(&["rev-parse", "--show-prefix"])? != "crates/tenure-cli/" {
        return None;
    }
    for path in what_tells() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    git(&["describe", "--always", "--abbrev=10", "--dirty", "--exclude=*"])
}

/// The files that change when the version does. A missing file is left out: cargo would rebuild each time.
fn what_tells() -> Vec<PathBuf> {
    let absolute = |what| git(&["rev-parse", "--path-format=absolute", what]).map(PathBuf::from);
    // A worktree has two directories: HEAD is its own, and the branches are shared.
    let own = absolute("--git-dir").unwrap_or_default();
    let shared = absolute("--git-common-dir").unwrap_or_else(|| own.clone());
    let mut paths =
        vec![own.join("HEAD"), own.join("logs/HEAD"), shared.join("packed-refs"), shared.join("reftable")];
    paths.extend(git(&["symbolic-ref", "--quiet", "HEAD"]).map(|branch| shared.join(branch)));
    // The sources count too: otherwise the version would not show that they were changed.
    for name in ["Cargo.toml", "Cargo.lock"] {
        paths.push(Path::new("../..").join(name));
    }
    for one in std::fs::read_dir("..").into_iter().flatten().flatten() {
        paths.extend([one.path().join("src"), one.path().join("Cargo.toml")]);
    }
    paths.retain(|path| path.exists());
    paths
}

/// The output of git; `None` if git is missing, fails or prints nothing.
fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Inside a git hook, these variables name the repository of the hook.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    let output = command.args(args).output().ok().filter(|output| output.status.success())?;
    let answer = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!answer.is_empty()).then_some(answer)
}
