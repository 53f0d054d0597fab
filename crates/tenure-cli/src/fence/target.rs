use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use tenure::Key;

use super::object::Object;
use super::value::ValuePlace;
use crate::exit::Failure;

/// A fenced resource, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A file on the local disk.
    File(PathBuf),
    /// A value in the store of the command, or an object of a bucket.
    Value(ValuePlace),
}

impl Target {
    pub(super) fn parse(text: &OsStr) -> Result<Self, Failure> {
        if text.is_empty() {
            return Err(Failure::usage(format!("the target is empty: name {EXAMPLES}")));
        }
        let Some(known) = text.to_str() else { return Ok(Self::File(text.into())) };
        if known == "-" {
            return Err(Failure::usage(format!(
                "- is not a target, because a stream cannot refuse a token: name {EXAMPLES}"
            )));
        }
        if let Some(name) = known.strip_prefix("key:") {
            return Ok(Self::Value(ValuePlace::Key(Key::parse(name)?)));
        }
        match known.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => file(rest).map(Self::File),
            Some((scheme, _))
                if ["s3", "gs", "az"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) =>
            {
                Ok(Self::Value(ValuePlace::Object(Object::parse(known)?)))
            }
            Some((scheme, _)) if is_scheme(scheme) => Err(Failure::usage(format!(
                "{scheme}:// is not a target that tenure can fence: name {EXAMPLES}"
            ))),
            _ => Ok(Self::File(known.into())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Value(ValuePlace::Key(key)) => write!(f, "key:{key}"),
            Self::Value(ValuePlace::Object(object)) => write!(f, "{object}"),
        }
    }
}

/// The path of a URL, after `file://`.
fn file(rest: &str) -> Result<PathBuf, Failure> {
    if !rest.starts_with('/') {
        return Err(Failure::usage(
            "the URL of a file has three slashes, as in file:///var/lib/jobs/report.csv",
        ));
    }
    if rest.contains(['?', '#']) {
        return Err(Failure::usage(
            "the URL of a file has no ? and no #: write %3F and %23 for those of its name",
        ));
    }
    let is_escape = |at: usize| {
        rest.as_bytes().get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if rest.match_indices('%').any(|(at, _)| !is_escape(at)) {
        return Err(Failure::usage("the URL has a '%' without two hexadecimal digits: write %25 for itself"));
    }
    let path: Vec<u8> = percent_decode_str(rest).collect();
    if path.contains(&0) {
        return Err(Failure::usage("the URL has a zero byte, which no path has"));
    }
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path)))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

const EXAMPLES: &str =
    "a file (./report.csv), an object (s3://bucket/report.csv) or a key of the store (key:report)";

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn parse(text: &str) -> Target {
        Target::parse(text.as_ref()).unwrap()
    }

    #[test]
    fn a_target_is_a_path_unless_it_says_otherwise() {
        for path in ["report.csv", "./key:x", "/var/x", "a b", "C:/x", "s3"] {
            assert_eq!(parse(path), Target::File(path.into()));
        }
        assert_eq!(parse("file:///var/a%20b"), Target::File("/var/a b".into()));
        assert_eq!(
            parse("key:billing/report"),
            Target::Value(ValuePlace::Key(Key::parse("billing/report").unwrap()))
        );
    }

    #[test]
    fn what_is_no_target_is_refused_with_its_reason() {
        for (text, word) in [
            ("", "empty"),
            ("-", "stream"),
            ("file://host/x", "three slashes"),
            ("file:///x?y", "no ?"),
            ("file:///x%2", "hexadecimal"),
            ("file:///x%00", "zero byte"),
            ("ftp://x/y", "ftp://"),
            ("key:", "empty"),
            ("key:../x", ".."),
            ("key:.tenure/x", ".tenure"),
        ] {
            let error = Target::parse(text.as_ref()).unwrap_err();
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_a_path() {
        let text = OsStr::from_bytes(b"a\xff");
        assert_eq!(Target::parse(text).unwrap(), Target::File(text.into()));
        assert_eq!(parse("file:///a%ff"), Target::File(OsStr::from_bytes(b"/a\xff").into()));
    }
}
