//! Checks of the files that a page shows: units, crontabs, configurations.

use std::fs;
use std::process::Command;

use super::page::{Block, Page};
use crate::run_support::{TENURE, World, skipped};

/// Errors in the blocks of a page that are not executed.
pub(crate) fn wrong(page: &Page) -> Vec<String> {
    let mut wrong = Vec::new();
    for block in &page.blocks {
        let problem = match block.language() {
            // Console blocks are executed, Rust is compiled with the documentation of the crate, and text blocks are
            // drawings.
            "console" | "rust" | "text" => None,
            "sh" | "bash" if block.why_not_executed().is_some() => None,
            "sh" | "bash" => Some(
                "commands belong into a console block, which is executed; where that cannot be, say why: ```sh not \
                 executed: it builds for minutes"
                    .to_owned(),
            ),
            "toml" => toml::from_str::<toml::Table>(&block.text.join("\n")).err().map(|error| error.to_string()),
            "json" => serde_json::from_str::<serde_json::Value>(&block.text.join("\n"))
                .err()
                .map(|error| error.to_string()),
            "crontab" => block.text.iter().find_map(|line| crontab(line)),
            "ini" => unit(block),
            // The tests of the PostgreSQL store execute SQL.
            "yaml" | "dockerfile" | "sql" => None,
            "" => Some("it has no language".to_owned()),
            other => Some(format!("unknown kind of block: {other:?}")),
        };
        let problem = problem.or_else(|| block.text.iter().find_map(|line| words_of_tenure(block, line)));
        wrong.extend(problem.map(|problem| format!("{}:{}: {problem}", page.name, block.line())));
    }
    wrong
}

/// The error in a line of a crontab.
fn crontab(line: &str) -> Option<String> {
    let line = line.trim();
    let is_variable = line
        .split_once('=')
        .is_some_and(|(name, _)| name.trim().chars().all(|next| next.is_ascii_alphanumeric() || next == '_'));
    if line.is_empty() || line.starts_with('#') || is_variable {
        return None;
    }
    let mut words = line.split_whitespace();
    let limits = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];
    for (least, most) in limits {
        let Some(field) = words.next() else { return Some(format!("it has less than five times: {line}")) };
        let is_right = field.split(',').all(|part| {
            let (range, step) = part.split_once('/').unwrap_or((part, "1"));
            let number =
                |text: &str| text.parse::<u32>().is_ok_and(|number| (least..=most).contains(&number));
            let in_range = range == "*" || range.split('-').all(number);
            in_range && step.parse::<u32>().is_ok_and(|step| step > 0)
        });
        if !is_right {
            return Some(format!("{field:?} is no time of a crontab: {line}"));
        }
    }
    let command = words.collect::<Vec<_>>().join(" ");
    if command.is_empty() {
        return Some(format!("it has no command: {line}"));
    }
    let has_percent = command.replace("\\%", "").contains('%');
    has_percent.then(|| format!("cron makes a new line of '%': write '\\%': {line}"))
}

/// The complaint of systemd about a unit, whose name is in its first line: `# /etc/systemd/system/worker@.service`.
fn unit(block: &Block) -> Option<String> {
    let named = block.text.first().and_then(|line| line.strip_prefix("# ")).and_then(|line| {
        line.split_whitespace().next()?.trim_end_matches([':', '.', ',']).rsplit('/').next()
    });
    let Some(name) = named.filter(|name| name.contains('.')) else {
        return Some("the first line names the file: # /etc/systemd/system/worker.service".to_owned());
    };
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skipped("systemd-analyze is not installed: units in the documentation are not verified");
        return None;
    }
    let world = World::new("docs-unit");
    let file = world.path(name);
    // systemd requires that the programs exist.
    let text = block.text.join("\n").replace("/usr/local/bin/tenure", TENURE);
    fs::write(&file, text).unwrap();
    let mut systemd = Command::new("systemd-analyze");
    let output = systemd.args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let about_it: Vec<&str> =
        said.lines().filter(|line| line.contains(name.split('@').next().unwrap())).collect();
    (!about_it.is_empty()).then(|| about_it.join("\n"))
}

/// The complaint of `tenure` about the arguments in a line of a file.
fn words_of_tenure(block: &Block, line: &str) -> Option<String> {
    if !["crontab", "ini", "sh", "bash", "dockerfile", "yaml"].contains(&block.language())
        || ["#", "COPY", "ENV"].iter().any(|word| line.trim_start().starts_with(word))
    {
        return None;
    }
    let line = line.replace(['"', '[', ']', ',', '\''], " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_tenure = |word: &&str| {
        let program = word.rsplit('=').next().unwrap();
        !program.contains("://") && program.rsplit('/').next() == Some("tenure")
    };
    let first = words.iter().position(is_tenure)? + 1;
    let is_more = |word: &&&str| !["--", "#", "&&", ";", "|"].contains(word);
    let words: Vec<&str> = words[first..].iter().take_while(is_more).copied().collect();
    if words.is_empty() {
        return None;
    }
    // `--help` comes last, so that the arguments before it are parsed.
    let output = Command::new(TENURE).env_clear().args(&words).arg("--help").output().unwrap();
    (!output.status.success()).then(|| format!("{line}: {}", String::from_utf8_lossy(&output.stderr)))
}
