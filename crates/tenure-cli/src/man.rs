//! `tenure man`.

use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{self, Args};
use crate::exit::{self, Failure};
use crate::output;

/// Writes the manual, made of the definitions of the arguments: the first page to standard output, or all to a folder.
pub(crate) fn man(man: &args::Man) -> Result<ExitCode, Failure> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    match &man.out {
        Some(folder) => {
            let written = std::fs::create_dir_all(folder).and_then(|()| write_all(&command, folder));
            written.map_err(|error| {
                let folder = folder.display();
                let sentence = format!(
                    "the manual could not be written to {folder}: {error}. Name a folder that can be written to"
                );
                Failure::new(exit::UNAVAILABLE, sentence)
            })?;
        }
        None => output::answer(&page(&Man::new(command)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One page for each command, and for those below it.
fn write_all(command: &Command, folder: &Path) -> std::io::Result<()> {
    let man = Man::new(command.clone());
    std::fs::write(folder.join(man.get_filename()), page(&man))?;
    command.get_subcommands().try_for_each(|below| write_all(below, folder))
}

/// A page as it is read. Lines are neither filled up with spaces nor are words divided: people copy from it.
fn page(man: &Man) -> String {
    let mut page = Vec::new();
    man.render(&mut page).expect("memory takes everything");
    let page = String::from_utf8_lossy(&page);
    page.replacen("\n.SH NAME\n", "\n.nh\n.ad l\n.SH NAME\n", 1).replacen("\n.SH EXTRA\n", "\n.SH NOTES\n", 1)
}
