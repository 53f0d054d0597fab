//! `tenure man`.

use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{self, Args};
use crate::exit::Failure;
use crate::output;

/// Writes the manual, generated from the definitions of the arguments: the main page to standard output, or all pages
/// to a directory.
pub(crate) fn man(man: &args::Man) -> Result<ExitCode, Failure> {
    let mut command = <Args>::command().disable_help_subcommand(true);
    command.build();
    match &man.out {
        Some(directory) => {
            let written = std::fs::create_dir_all(directory).and_then(|()| write_all(&command, directory));
            written.map_err(|error| {
                let directory = directory.display();
                Failure::unavailable(format!(
                    "the manual could not be written to {directory}: {error}. Name a writable directory"
                ))
            })?;
        }
        None => output::answer(&page(&command))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one page for each command and its subcommands.
fn write_all(command: &Command, directory: &Path) -> std::io::Result<()> {
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(directory.join(name), page(command))?;
    command.get_subcommands().try_for_each(|below| write_all(below, directory))
}

/// A page. Lines are not justified and words are not hyphenated, so that text can be copied from it.
fn page(command: &Command) -> String {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page).expect("memory takes everything");
    let page = String::from_utf8_lossy(&page);
    let page = page.replacen("\n.SH NAME\n", "\n.nh\n.ad l\n.SH NAME\n", 1);
    let Some((options, extra)) = page.split_once(".SH EXTRA\n") else { return page };
    let version = extra.find(".SH VERSION\n").map_or("", |at| &extra[at..]);
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    format!("{options}{}{version}", sections(&notes))
}

/// The notes of `--help` below the options, in the layout of a manual: in lists instead of columns, which would not
/// fit.
fn sections(notes: &str) -> String {
    let mut told = String::new();
    let mut section = "";
    for line in notes.lines().filter(|line| !line.is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let heading = match line {
            "Examples:" => "EXAMPLES",
            "Exit codes:" => "EXIT STATUS",
            _ if indent == 0 => "NOTES",
            _ => section,
        };
        if heading != section {
            section = heading;
            told.push_str(&format!(".SH \"{section}\"\n"));
        }
        let item = line.trim();
        told.push_str(&match item.split_once("  ") {
            _ if indent == 0 && section != "NOTES" => String::new(),
            _ if indent == 0 => format!(".PP\n{}\n", roff(item)),
            // It continues the previous item.
            _ if indent >= 4 => format!("{}\n", roff(item)),
            Some((what, meaning)) => format!(".TP 7\n\\fB{}\\fR\n{}\n", roff(what), roff(meaning.trim())),
            None if section == "EXAMPLES" => format!(".TP 7\n\\fB{}\\fR\n", roff(item)),
            None => format!(".IP \\(bu 2\n{}\n", roff(item)),
        });
    }
    told
}

/// The text, escaped for roff.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let text = text.replace('…', "...");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}
