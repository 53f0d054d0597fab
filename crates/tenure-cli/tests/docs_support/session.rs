//! One page, executed in one shell.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::page::{Page, Step};
use super::pattern::{HOST, Known};
use crate::run_support::{self, MARK, World};

/// Executes the commands of a page, and gives what is not as the page says.
///
/// It begins in an empty home, `/home/ann`, with nothing else in the environment. The shell stays the same from the first
/// block to the last; what still runs at the end of the page is killed.
pub(crate) fn execute(page: &Page) -> Vec<String> {
    let steps = page.steps();
    let world = World::new("docs");
    let home = world.path("home/ann");
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(world.path("steps")).unwrap();
    let mut script = "steps_status=0\n".to_owned();
    for (number, step) in steps.iter().enumerate() {
        let file = world.path(&format!("steps/{number}"));
        fs::write(&file, format!("{}\n", step.command)).unwrap();
        // The exit code of one command is the next one's `$?`.
        script +=
            &format!("(exit $steps_status); . '{}'; steps_status=$?; printf '\\n{END}\\n'\n", file.display());
    }
    let script_file = world.path("steps/all");
    fs::write(&script_file, script).unwrap();

    let said = world.path("said");
    let out = File::create(&said).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["--noprofile", "--norc"]).arg(&script_file).current_dir(&home).env_clear();
    shell.env("HOME", &home).env("PATH", path()).env("LANG", "C.UTF-8");
    shell.env(MARK, home.parent().unwrap().parent().unwrap().file_name().unwrap());
    shell.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
    let ended_in_time = end_within(&mut shell, LIMIT);

    let said = String::from_utf8_lossy(&fs::read(&said).unwrap()).into_owned();
    let said = as_on_this_machine(&said, &world.path(""));
    let answers: Vec<&str> = said.split(&format!("\n{END}\n")).collect();
    let wrong = compare(page, &steps, &answers);
    if wrong.is_empty() && !ended_in_time {
        return vec![format!("{}: it does not end within {LIMIT:?}", page.name)];
    }
    wrong
}

fn compare(page: &Page, steps: &[Step], answers: &[&str]) -> Vec<String> {
    let (mut known, mut wrong, mut right) = (Known::default(), Vec::new(), page.lines.clone());
    // From the last to the first, so that lines are where they were.
    let mut rewrite = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let whole = number + 1 < answers.len();
        let Some(answer) = answers.get(number) else { break };
        let actual: Vec<String> = answer.lines().map(str::to_owned).collect();
        match known.after(&step.expected, &actual) {
            Some(after) if whole => known = after,
            _ => {
                wrong.push(difference(page, step, &actual, &known, whole));
                rewrite.push((step, actual.iter().map(|line| known.as_written(line)).collect::<Vec<_>>()));
            }
        }
        if !whole {
            break;
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        for (step, actual) in rewrite.into_iter().rev() {
            right.splice(step.answer_at..step.answer_at + step.expected.len(), actual);
        }
        fs::write(&page.path, right.join("\n") + "\n").unwrap();
    }
    wrong
}

fn difference(page: &Page, step: &Step, actual: &[String], known: &Known, whole: bool) -> String {
    let mut text = format!("{}:{}: $ {}\n", page.name, step.line, step.command);
    if !whole {
        text += &format!("it does not end, or ended the shell; a page has {LIMIT:?}\n");
    }
    let same = |(expected, actual): &(&String, &String)| known.after_line(expected, actual).is_some();
    let same = step.expected.iter().zip(actual).take_while(same).count();
    step.expected[..same].iter().for_each(|line| text += &format!("   {line}\n"));
    step.expected[same..].iter().for_each(|line| text += &format!(" - {line}\n"));
    actual[same..].iter().for_each(|line| text += &format!(" + {line}\n"));
    text
}

/// The command under test comes first.
fn path() -> String {
    let folder = Path::new(run_support::TENURE).parent().unwrap().display();
    format!("{folder}:{}", std::env::var("PATH").unwrap_or_default())
}

/// What the machine of the pages would have said: `/home/ann` is at its root, and it is called `web-1`.
fn as_on_this_machine(said: &str, root: &Path) -> String {
    let root = root.display().to_string();
    let said = said.replace(root.trim_end_matches('/'), "");
    let said: String = said.split_inclusive('\n').filter_map(by_a_person).collect();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut text = String::new();
    for (at, piece) in said.split(&format!("{host}:")).enumerate() {
        let is_process = piece.starts_with(|next: char| next.is_ascii_digit());
        let whole = text.ends_with(|last: char| last.is_alphanumeric() || "-.".contains(last));
        let name = if is_process && !whole { HOST } else { &host };
        text += &if at == 0 { piece.to_owned() } else { format!("{name}:{piece}") };
    }
    text
}

/// A line as a shell shows it that reads no file. That a process of the background was killed is told between prompts.
fn by_a_person(line: &str) -> Option<String> {
    let Some((_, said)) = line.strip_prefix("/steps/").and_then(|line| line.split_once(": line ")) else {
        return Some(line.to_owned());
    };
    let (number, said) = said.split_once(": ")?;
    let is_of_a_job = said.starts_with(|next: char| next.is_ascii_digit()) && number.parse::<u32>().is_ok();
    (!is_of_a_job).then(|| format!("bash: {said}"))
}

#[expect(clippy::disallowed_methods, reason = "other processes are given time")]
fn end_within(shell: &mut Command, limit: Duration) -> bool {
    let mut shell = shell.spawn().unwrap();
    let began = Instant::now();
    while shell.try_wait().unwrap().is_none() {
        if began.elapsed() > limit {
            shell.kill().unwrap();
            shell.wait().unwrap();
            return false;
        }
        run_support::sleep_ms(10);
    }
    true
}

/// How long a page may take, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// What no command says.
const END: &str = "~~~ the end of a step of the documentation ~~~";
