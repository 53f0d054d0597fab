//! Errors of the command line.

use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Args;
use crate::duration;
use crate::exit::{self, Failure};

/// Prints clap's result: requested help, the version, or the error in one sentence.
pub(crate) fn answer(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that stops early is no error.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(exit::USAGE)
        }
        _ => {
            let failure = Failure::usage(sentence(error));
            failure.report(wants_json());
            failure.code()
        }
    }
}

/// Clap's paragraphs as one sentence, with the next step.
fn sentence(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let what = rendered.strip_prefix("error: ").unwrap_or(&rendered);
    let what = what.split("\n\nUsage:").next().unwrap_or(what);
    let what = what.split("\n\nFor more information").next().unwrap_or(what);
    let lines: Vec<&str> = what.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (tips, said): (Vec<&str>, Vec<&str>) = lines.into_iter().partition(|line| line.starts_with("tip: "));
    let mut sentence = said.join(" ").replace(">...", ">");
    let tips = match likely_meaning(error) {
        Some(tip) => vec![tip],
        None => tips.into_iter().map(|tip| tip.trim_start_matches("tip: ").to_owned()).collect(),
    };
    for tip in tips {
        sentence = format!("{sentence} ({tip})");
    }
    format!("{sentence}. See {} --help", subject())
}

/// The likely meaning of an unexpected argument, if clap does not suggest one.
fn likely_meaning(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    match word.strip_prefix('-') {
        Some(rest) if rest.starts_with(|next: char| next.is_ascii_digit()) => duration::parse(word).err(),
        None if error.kind() == ErrorKind::UnknownArgument
            && ["tenure run", "tenure elect"].contains(&subject().as_str()) =>
        {
            Some(format!("the command comes after --, as in {} NAME -- {word}", subject()))
        }
        _ => None,
    }
}

/// The command that was meant, as far as it is known.
fn subject() -> String {
    let mut command = &<Args>::command();
    let mut subject = "tenure".to_owned();
    for word in words_before_dashes() {
        if let Some(below) = command.find_subcommand(&word) {
            subject = format!("{subject} {}", below.get_name());
            command = below;
        }
    }
    subject
}

pub(crate) fn wants_json() -> bool {
    words_before_dashes().any(|word| word == "--json")
}

/// The arguments before `--`: later ones belong to CMD.
fn words_before_dashes() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::args_os().skip(1).take_while(|word| word != "--")
}
