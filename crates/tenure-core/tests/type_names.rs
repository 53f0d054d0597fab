//! No crate defines two types with the same name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Types that deliberately share the name of another type of their crate, with the reason.
const SAME_NOTION: &[(&str, &str, &str)] = &[
    ("tenure", "Campaign", BLOCKING),
    ("tenure", "Coordinator", BLOCKING),
    ("tenure", "CoordinatorBuilder", BLOCKING),
    ("tenure", "Election", BLOCKING),
    ("tenure", "Fenced", BLOCKING),
    ("tenure", "Keys", BLOCKING),
    ("tenure", "Lease", BLOCKING),
    ("tenure", "LeaseSet", BLOCKING),
    ("tenure", "Request", BLOCKING),
    ("tenure", "SetRequest", BLOCKING),
    ("tenure", "Slot", BLOCKING),
    ("tenure", "SlotGroup", BLOCKING),
    ("tenure", "Slots", BLOCKING),
    ("tenure", "Term", BLOCKING),
];

const BLOCKING: &str = "`tenure::blocking` has the same types, for programs without an executor";

#[test]
fn no_crate_has_two_types_of_one_name() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let packages: Vec<_> = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let mut found = BTreeSet::new();
    for package in packages.iter().map(|name| name.to_str().unwrap()) {
        let mut types = BTreeMap::<String, Vec<PathBuf>>::new();
        for path in sources(&crates.join(package).join("src")) {
            for name in types_in(&fs::read_to_string(&path).unwrap()) {
                types.entry(name).or_default().push(path.clone());
            }
        }
        assert!(!types.is_empty(), "the types of {package} are found");
        for (name, paths) in types.into_iter().filter(|(_, paths)| paths.len() > 1) {
            let same = SAME_NOTION.iter().find(|(of, same, _)| *of == package && *same == name);
            assert!(same.is_some(), "{package} has several types {name}: name them apart: {paths:?}");
            found.extend(same);
        }
    }
    let listed: BTreeSet<_> = SAME_NOTION.iter().collect();
    assert_eq!(found, listed, "the list has what there is, and nothing else");
}

/// The source files in a directory, without those of tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_test = |path: &PathBuf| path.file_stem().is_some_and(|name| name == "tests");
    let of_entry = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.filter(|path| !is_test(path)).flat_map(of_entry).collect()
}

/// Names of the types that a file defines. Associated types in an implementation are not definitions; they are
/// indented.
fn types_in(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let defined = |line: &str| {
        let mut words =
            line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "unsafe");
        let (keyword, rest) = (words.next()?, words.next()?);
        let is_definition = match keyword {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => !line.starts_with(' '),
            _ => false,
        };
        let name: String = rest.chars().take_while(|next| next.is_alphanumeric() || *next == '_').collect();
        (is_definition && name.starts_with(char::is_uppercase)).then_some(name)
    };
    code.lines().filter_map(defined).collect()
}

#[test]
fn types_are_found_by_their_definitions() {
    let text = "pub(crate) struct One<T>(T);\nenum Two {\n    Struct,\n}\n/// struct Not;\nimpl Trait for Two {\n    \
                type Output = One;\n}\npub type Three = u8;\n#[cfg(test)]\nmod tests {\n    struct Not;\n}\n";
    assert_eq!(types_in(text), ["One", "Two", "Three"]);
}
