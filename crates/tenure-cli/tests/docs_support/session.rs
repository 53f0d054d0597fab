//! Executes each page in its own shell.

use std::fs::{self, File};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use super::page::{Page, Step};
use super::pattern::{HOST, Known};
use crate::run_support::log_lines::is_log_line;
use crate::run_support::{self, MARK, World};

/// Executes the commands of the pages, and returns the differences from their text.
///
/// Each page begins in an empty home, `/home/ann`, with an otherwise empty environment. One shell executes all blocks.
/// Processes that still run at the end of the page are killed.
pub(crate) fn execute<'a>(pages: impl Iterator<Item = &'a Page>) -> Vec<String> {
    let mut pages = pages.filter(|page| !page.steps().is_empty()).peekable();
    let (mut running, mut wrong): (Vec<Session>, Vec<String>) = (Vec::new(), Vec::new());
    while pages.peek().is_some() || !running.is_empty() {
        let room = AT_ONCE - running.len();
        running.extend(pages.by_ref().take(room).map(Session::start));
        run_support::sleep_ms(10);
        running.retain_mut(|session| {
            let has_ended = session.has_ended();
            wrong.extend(has_ended.then(|| session.differences()).into_iter().flatten());
            !has_ended
        });
    }
    wrong
}

/// A page during its execution.
struct Session<'a> {
    page: &'a Page,
    steps: Vec<Step>,
    world: World,
    shell: Child,
    began: Instant,
}

impl<'a> Session<'a> {
    fn start(page: &'a Page) -> Self {
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
            let file = file.display();
            script += &format!("(exit $steps_status); . '{file}'; steps_status=$?; printf '\\n{END}\\n'\n");
        }
        fs::write(world.path("steps/all"), script).unwrap();
        let out = File::create(world.path("said")).unwrap();
        let mut shell = world.command("bash");
        let mark = shell
            .get_envs()
            .find(|(name, _)| *name == MARK)
            .and_then(|(_, mark)| mark.map(ToOwned::to_owned));
        shell.args(["--noprofile", "--norc"]).arg(world.path("steps/all")).current_dir(&home).env_clear();
        shell.env("HOME", &home).env("PATH", path()).env("LANG", "C.UTF-8").env(MARK, mark.unwrap());
        shell.stdout(out.try_clone().unwrap()).stderr(out);
        let shell = shell.spawn().unwrap();
        #[expect(clippy::disallowed_methods, reason = "another process is given time")]
        let began = Instant::now();
        Self { page, steps, world, shell, began }
    }

    fn has_ended(&mut self) -> bool {
        if self.began.elapsed() > LIMIT {
            self.shell.kill().unwrap();
            self.shell.wait().unwrap();
        }
        self.shell.try_wait().unwrap().is_some()
    }

    fn differences(&self) -> Vec<String> {
        let said = String::from_utf8_lossy(&fs::read(self.world.path("said")).unwrap()).into_owned();
        let said = as_on_this_machine(&said, &self.world.path(""));
        let answers: Vec<&str> = said.split(&format!("\n{END}\n")).collect();
        compare(self.page, &self.steps, &answers)
    }
}

fn compare(page: &Page, steps: &[Step], answers: &[&str]) -> Vec<String> {
    let (mut known, mut wrong, mut right) = (Known::default(), Vec::new(), page.lines.clone());
    // From last to first, so that earlier line numbers stay valid.
    let mut rewrite = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let whole = number + 1 < answers.len();
        let Some(answer) = answers.get(number) else { break };
        let actual: Vec<String> =
            answer.lines().filter(|line| is_shown(line, &step.expected)).map(str::to_owned).collect();
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

/// `PATH` with the command under test first.
fn path() -> String {
    let directory = Path::new(run_support::TENURE).parent().unwrap().display();
    format!("{directory}:{}", std::env::var("PATH").unwrap_or_default())
}

/// The output as on the machine of the pages: `/home/ann` is at its root, its name is `web-1`, and its user is `ann`.
fn as_on_this_machine(said: &str, root: &Path) -> String {
    let root = root.display().to_string();
    let said = said.replace(root.trim_end_matches('/'), "");
    let said: String = said.split_inclusive('\n').filter_map(by_a_person).collect();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let me = nix::unistd::geteuid();
    let user =
        nix::unistd::User::from_uid(me).ok().flatten().map_or_else(|| me.to_string(), |user| user.name);
    let said = said.replace(&format!("{user}@{host}"), &format!("ann@{HOST}"));
    let said = said.replace(&format!("\"host\":\"{host}\""), &format!("\"host\":\"{HOST}\""));
    let said = said.replace(&format!("  host          {host}\n"), &format!("  host          {HOST}\n"));
    let said = said.replace(&format!("\"user\":\"{user}\""), "\"user\":\"ann\"");
    let said = said.replace(&format!(", user {user}\n"), ", user ann\n");
    let said = match tenure::this_process().container() {
        Some(id) => {
            let said = said.replace(&format!("\"container\":\"{id}\""), "\"container\":null");
            said.replace(&format!(", in container {id}"), "")
        }
        None => said,
    };
    let mut text = String::new();
    for (at, piece) in said.split(&format!("{host}:")).enumerate() {
        let is_process = piece.starts_with(|next: char| next.is_ascii_digit());
        let whole = text.ends_with(|last: char| last.is_alphanumeric() || "-.".contains(last));
        let name = if is_process && !whole { HOST } else { &host };
        text += &if at == 0 { piece.to_owned() } else { format!("{name}:{piece}") };
    }
    text
}

/// The line as an interactive shell shows it. An interactive shell reports killed background jobs between prompts, so
/// those lines are dropped.
fn by_a_person(line: &str) -> Option<String> {
    let Some((_, said)) = line.strip_prefix("/steps/").and_then(|line| line.split_once(": line ")) else {
        return Some(line.to_owned());
    };
    let (number, said) = said.split_once(": ")?;
    let is_of_a_job =
        said.trim_start().starts_with(|next: char| next.is_ascii_digit()) && number.parse::<u32>().is_ok();
    (!is_of_a_job).then(|| format!("bash: {said}"))
}

/// True if a terminal shows the line, or the page does. The shell of a page writes to a file, so that `tenure run` also prints
/// what it prints for logs.
fn is_shown(line: &str, expected: &[String]) -> bool {
    let kind = |line: &str| line.ends_with(" is released");
    !is_log_line(line) || expected.iter().any(|other| is_log_line(other) && kind(other) == kind(line))
}

/// Number of pages that are executed at once: they mostly wait.
const AT_ONCE: usize = 4;

/// Time limit of a page, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// End of a step; no command prints it.
const END: &str = "~~~ the end of a step of the documentation ~~~";
