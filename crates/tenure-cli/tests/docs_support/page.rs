use std::fs;
use std::path::{Path, PathBuf};

/// One page of the documentation, in Markdown.
pub(crate) struct Page {
    /// Path from the root of the repository: `docs/start.md`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<String>,
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block of code.
pub(crate) struct Block {
    /// Text after the fence: `console`, `toml`, `sh not executed: …`.
    pub(crate) info: String,
    /// Its lines on the page, counted from zero.
    pub(crate) first: usize,
    pub(crate) text: Vec<String>,
}

/// A command line of a `console` block, and its expected output.
pub(crate) struct Step {
    /// Its line on the page, counted from one.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
    /// First line of the output on the page, counted from zero.
    pub(crate) answer_at: usize,
}

impl Page {
    pub(crate) fn read(root: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let blocks = blocks(&name, &lines);
        Self { name, path: path.to_owned(), lines, blocks }
    }

    /// The page without its code blocks.
    pub(crate) fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let fenced = |at: usize| {
            self.blocks.iter().any(|block| (block.first - 1..=block.first + block.text.len()).contains(&at))
        };
        let lines = self.lines.iter().enumerate();
        lines.filter(move |(at, _)| !fenced(*at)).map(|(at, line)| (at + 1, line.as_str()))
    }

    /// Every command line, in order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let consoles = self.blocks.iter().filter(|block| block.language() == "console");
        consoles.flat_map(|block| self.steps_of(block)).collect()
    }

    fn steps_of(&self, block: &Block) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (at, line) in block.text.iter().enumerate() {
            let at = block.first + at;
            if let Some(command) = line.strip_prefix("$ ") {
                let command = command.to_owned();
                steps.push(Step { line: at + 1, command, expected: Vec::new(), answer_at: at + 1 });
                continue;
            }
            let step = steps.last_mut().unwrap_or_else(|| {
                panic!("{}:{}: a console block begins with a command, '$ …'", self.name, at + 1)
            });
            match line.strip_prefix('>').filter(|_| step.expected.is_empty()) {
                Some(more) => {
                    step.command = format!("{}\n{}", step.command, more.strip_prefix(' ').unwrap_or(more));
                    step.answer_at = at + 1;
                }
                None => step.expected.push(line.clone()),
            }
        }
        steps
    }
}

impl Block {
    pub(crate) fn language(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or("")
    }

    /// The reason why its commands are not executed, if it has one.
    pub(crate) fn why_not_executed(&self) -> Option<&str> {
        self.info.split_once(" not executed: ").map(|(_, why)| why.trim()).filter(|why| !why.is_empty())
    }

    /// The line of the page that it begins on, counted from one.
    pub(crate) fn line(&self) -> usize {
        self.first + 1
    }
}

fn blocks(name: &str, lines: &[String]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in lines.iter().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                open = Some(Block { info: info.trim().to_owned(), first: at + 1, text: Vec::new() });
            }
            (Some(""), Some(block)) => blocks.push(block),
            (_, Some(mut block)) => {
                block.text.push(line.clone());
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{name}: a block of code is not closed");
    blocks
}

/// Every page for users of Tenure: the README, and the pages below `docs`. RFCs are history, and are not executed.
pub(crate) fn pages(root: &Path) -> Vec<Page> {
    all(root).into_iter().filter(|page| !page.name.starts_with("docs/rfcs/")).collect()
}

/// The same pages, and the RFCs.
pub(crate) fn all(root: &Path) -> Vec<Page> {
    let mut paths = vec![root.join("README.md")];
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Page::read(root, path)).collect()
}
