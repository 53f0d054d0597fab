//! What stores promise, in words; and that the README says the same.
#![cfg(all(feature = "file", feature = "s3"))]

use std::path::PathBuf;

use tenure::store::{File, Memory};
use tenure_connect::{PromiseValue, Promises, StoreUrl};
use tenure_store::{Guarantees, Store};

const BEGIN: &str = "<!-- stores: begin. Made by tests/promises.rs of tenure-connect: UPDATE_README=1 cargo test -p tenure-connect --all-features -->\n";
const END: &str = "<!-- stores: end -->\n";

/// One column for each store that can be opened, in the order in which people meet them.
fn table() -> String {
    let bucket: StoreUrl = "s3://bucket/prefix?region=eu-central-1".parse().unwrap();
    let stores = [
        ("[`file:///path`](docs/stores/file.md)", Promises::of_a_folder(true)),
        ("`file:///path?accept=nfs`, on one machine", Promises::of_a_folder(false)),
        ("[`s3://bucket/prefix`](docs/stores/s3.md)", bucket.promises().unwrap()),
        ("`memory:`, in the library", Promises::of(&Memory::new())),
    ];
    let names: Vec<_> = stores.iter().map(|(name, _)| *name).collect();
    let rows: Vec<_> = stores.iter().map(|(_, promises)| promises.rows()).collect();
    let mut text = format!("| | {} |\n|{}\n", names.join(" | "), " --- |".repeat(stores.len() + 1));
    for (at, row) in rows[0].iter().enumerate() {
        let answers: Vec<_> = rows.iter().map(|rows| rows[at].answer.as_str()).collect();
        text.push_str(&format!("| {} | {} |\n", row.title, answers.join(" | ")));
    }
    text
}

#[test]
fn the_table_of_stores_in_the_readme_is_what_the_stores_promise() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the README has a mark where the table begins");
    let (there, after) = rest.split_once(END).expect("the README has a mark where the table ends");
    let expected = format!("\n{}\n", table());
    if std::env::var_os("UPDATE_README").is_some() {
        return std::fs::write(&path, [before, BEGIN, &expected, END, after].concat()).unwrap();
    }
    assert_eq!(there, expected, "run it once more with UPDATE_README=1, and look at what changed");
}

#[test]
fn every_guarantee_has_a_name_of_its_own_an_answer_and_a_meaning_in_every_case() {
    let mut nothing = Promises::of(&Memory::new());
    (nothing.guarantees, nothing.witness, nothing.removal) = (Guarantees::default(), false, false);
    let bucket: StoreUrl = "s3://bucket/prefix?region=eu-central-1".parse().unwrap();
    let bucket = bucket.promises().unwrap();
    for promises in [nothing, Promises::of_a_folder(true), Promises::of_a_folder(false), bucket] {
        let rows = promises.rows();
        for row in &rows {
            assert!(!row.answer.is_empty() && !row.means.is_empty(), "{row:?}");
            assert!(row.means.chars().count() <= 90 && !row.means.ends_with('.'), "{row:?}");
            assert_eq!(rows.iter().filter(|other| other.name == row.name).count(), 1, "{row:?}");
        }
    }
    let refused =
        nothing.rows().into_iter().filter(|row| row.means.starts_with("leases are refused")).count();
    assert_eq!(refused, nothing.guarantees.missing_for_leases().len() + 1, "and the size of a value");
}

#[test]
fn a_folder_that_is_not_there_yet_promises_what_it_keeps_once_it_is() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("promises-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let url = StoreUrl::of_folder(&path).unwrap();
    let before = url.promises().unwrap();
    assert!(!before.is_there && !path.exists(), "to ask makes nothing");
    let store = File::open(&path).unwrap();
    let after = url.promises().unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    assert!(after.is_there);
    assert_eq!(before.rows(), after.rows());
    assert_eq!(after.guarantees, store.guarantees());
    let removal = after.rows().into_iter().find(|row| row.name == "removal").unwrap();
    assert_eq!(removal.value, PromiseValue::Flag(true));
}
