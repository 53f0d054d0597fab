//! The allowed dependencies between the crates.

use std::process::Command;

/// Direct dependencies of a crate, without those of its tests.
fn dependencies(package: &str) -> Vec<String> {
    tree(package, &["--depth", "1"]).split_off(1)
}

/// A crate and everything that it is built with, by name.
fn tree(package: &str, more: &[&str]) -> Vec<String> {
    cargo_tree(package, &[&["--format", "{lib}"], more].concat())
}

/// Lines of `cargo tree`, without the dependencies of tests.
fn cargo_tree(package: &str, more: &[&str]) -> Vec<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let words = ["tree", "--offline", "--package", package, "--edges", "normal,build", "--prefix", "none"];
    let output = Command::new(cargo)
        .args(words)
        .arg("--no-dedupe")
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim().to_owned()).collect();
    lines.retain(|line| !line.is_empty());
    lines
}

#[test]
fn the_contract_depends_on_nothing_but_bytes_futures_and_errors() {
    let mut names = dependencies("tenure-store");
    names.sort();
    assert_eq!(names, ["bytes", "futures_core", "thiserror"]);
}

#[test]
fn the_contract_of_fences_depends_on_the_contract_alone() {
    let mut names = dependencies("tenure-fence");
    names.sort();
    assert_eq!(names, ["percent_encoding", "tenure_store", "thiserror"]);
}

#[test]
fn the_protocol_depends_on_the_contracts_and_on_nothing_that_does_io() {
    let mut names = dependencies("tenure-core");
    names.sort();
    assert_eq!(names, ["bytes", "jiff", "serde", "serde_json", "tenure_fence", "tenure_store", "thiserror"]);
    let everything = tree("tenure-core", &[]);
    for io in ["tokio", "rustix", "nix", "libc", "mio", "socket2", "getrandom", "tenure"] {
        assert!(!everything.iter().any(|name| name == io), "tenure-core depends on {io}: {everything:?}");
    }
}

/// The feature can neglect duties of the driver, so the simulation alone has it.
#[test]
fn the_command_is_built_without_the_seam_of_the_simulation() {
    let features = |package: &str| -> Vec<String> {
        let lines = cargo_tree(package, &["--all-features", "--format", "{lib} {f}"]);
        lines.into_iter().filter(|line| line.starts_with("tenure ")).collect()
    };
    let has_seam = |line: &String| line.contains("simulation");
    assert!(features("tenure-sim").iter().any(has_seam), "the feature is found where it is on");
    assert!(!features("tenure-cli").iter().any(has_seam));
}

#[test]
fn the_command_is_built_without_the_broken_stores() {
    let conformance = |package: &str| -> Vec<String> {
        let lines = cargo_tree(package, &["--all-features", "--format", "{lib} {f}"]);
        lines.into_iter().filter(|line| line.starts_with("tenure_conformance")).collect()
    };
    let has_broken_stores = |line: &String| line.contains("broken-stores");
    assert!(
        conformance("tenure-conformance").iter().any(has_broken_stores),
        "the feature is found where it is on"
    );
    let in_command = conformance("tenure-cli");
    assert!(!in_command.is_empty(), "`tenure probe` runs the suite");
    assert!(!in_command.iter().any(has_broken_stores), "{in_command:?}");
}
