//! The modules of the library: no directory of `src` depends on one that depends on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules that each module names, by `crate::module`. Tests inside the modules may name any module.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries = fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path());
    let rooms: BTreeMap<String, PathBuf> =
        entries.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect();
    let named = |text: &str| -> BTreeSet<String> {
        rooms.keys().filter(|room| text.contains(&format!("crate::{room}::"))).cloned().collect()
    };
    let of_room = |(room, path): (&String, &PathBuf)| {
        let mut others: BTreeSet<String> = sources(path).iter().flat_map(|text| named(text)).collect();
        others.remove(room);
        (room.clone(), others)
    };
    rooms.iter().filter(|(room, _)| *room != "lib" && *room != "docs").map(of_room).collect()
}

/// The code of a file, or of all files in a directory, without tests and comments.
fn sources(path: &Path) -> Vec<String> {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().flat_map(|entry| sources(&entry.unwrap().path())).collect();
    }
    if path.file_name().is_some_and(|name| name == "tests.rs") {
        return Vec::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    vec![code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")]
}

#[test]
fn no_module_depends_on_one_that_depends_on_it() {
    let arrows = arrows();
    assert!(arrows["coordinator"].contains("keeper"), "the arrows are found: {arrows:?}");
    for start in arrows.keys() {
        let (mut reached, mut ahead) = (BTreeSet::new(), vec![start]);
        while let Some(room) = ahead.pop() {
            for next in &arrows[room] {
                assert!(next != start, "{start} depends on itself, by way of {room}: {arrows:?}");
                if reached.insert(next) {
                    ahead.push(next);
                }
            }
        }
    }
}
