//! A test binary that cargo built.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A test binary, and the directory of its package, in which cargo would start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestBinary {
    /// `PACKAGE/TARGET`, or `PACKAGE/unit` for the tests inside a library or a command.
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) program: PathBuf,
}

impl TestBinary {
    /// All test binaries in the messages of a build, in the order of their names.
    pub(crate) fn all_in(messages: &str) -> Vec<Self> {
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut all: Vec<_> = messages.filter_map(|message| Self::built_by(&message)).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn built_by(message: &Value) -> Option<Self> {
        if message["profile"]["test"] != true {
            return None;
        }
        let program = PathBuf::from(message["executable"].as_str()?);
        let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = directory.file_name()?.to_str()?;
        let target = match message["target"]["kind"][0].as_str()? {
            "test" => message["target"]["name"].as_str()?,
            _ => "unit",
        };
        Some(Self { name: format!("{package}/{target}"), directory, program })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_among_the_messages_and_nothing_else() {
        let message = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/t/crates/some/Cargo.toml","target":{{"kind":["{kind}"],"name":"thing"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let messages = [
            message("test", true, "\"/t/target/thing-1\""),
            message("lib", true, "\"/t/target/some-2\""),
            message("bin", false, "\"/t/target/some\""),
            message("lib", false, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "no JSON".to_owned(),
        ];
        let found = TestBinary::all_in(&messages.join("\n"));
        let names: Vec<_> = found.iter().map(|binary| binary.name.as_str()).collect();
        assert_eq!(names, ["some/thing", "some/unit"]);
        assert_eq!(found[0].directory, Path::new("/t/crates/some"));
    }
}
