use std::path::PathBuf;

/// Command line of the suite.
#[derive(Debug, Default)]
pub(crate) struct Args {
    /// The command under attack.
    pub(crate) tenure: PathBuf,
    /// Runs only attacks whose name contains this text.
    pub(crate) filter: String,
    pub(crate) list: bool,
    pub(crate) json: bool,
    /// Also runs attacks that change a machine-wide setting for a few seconds.
    pub(crate) machine_wide: bool,
}

impl Args {
    /// Parses the command line. The error is the usage text.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let mut args = Self { machine_wide: is_ci(), ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--tenure" => args.tenure = words.next().ok_or(USAGE)?.into(),
                "--list" => args.list = true,
                "--json" => args.json = true,
                "--machine-wide" => args.machine_wide = true,
                word if word.starts_with('-') => return Err(USAGE.to_owned()),
                word => args.filter = word.to_owned(),
            }
        }
        if args.tenure.as_os_str().is_empty() && !args.list {
            return Err(USAGE.to_owned());
        }
        Ok(args)
    }
}

/// True in CI, where no attack may be skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").as_deref() == Ok("true")
}

const USAGE: &str = "\
Usage: ./test attack [FILTER] [--list] [--json] [--machine-wide]

Runs the attacks whose name contains FILTER. Needs root. --machine-wide also runs attacks that change a machine-wide
setting for a few seconds. CI=true implies it, and counts a skipped attack as a failed one.";
