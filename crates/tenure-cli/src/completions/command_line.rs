use clap::{Arg, Command, CommandFactory};

use crate::args::Args;

/// An unfinished command line, as far as it matters for the names that fit at its cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// The store that the line names.
    pub(super) store: Option<String>,
    pub(super) wanted: WantedNames,
    /// The current word, up to the cursor.
    pub(super) typed: String,
    /// Number of bytes of the current word that the shell takes for words of their own, and does not replace.
    pub(super) kept: usize,
}

/// Kind of the names that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedNames {
    /// Leases and plain keys.
    Keys,
    /// Groups of slots.
    Groups,
}

impl CommandLine {
    /// Parses the words after the name of the program. The last one is the current word, which may be empty. `None` if
    /// no name fits at the cursor.
    pub(super) fn parse(words: &[String]) -> Option<Self> {
        let mut before = joined(words);
        let typed = before.pop()?;
        let kept = typed.len() - words.last()?.len();
        if typed.starts_with('-') {
            return None;
        }
        let mut root = <Args>::command();
        root.build();
        let position = Position::after(&root, &before)?;
        let wanted = match position.command.get_positionals().next()?.get_id().as_str() {
            "name" if position.slots => WantedNames::Groups,
            "name" | "prefix" | "key" => WantedNames::Keys,
            "group" => WantedNames::Groups,
            _ => return None,
        };
        Some(Self { store: position.store, wanted, typed, kept })
    }
}

/// The words as the user wrote them: bash makes words of their own of `:` and `=`.
fn joined(words: &[String]) -> Vec<String> {
    let is_break = |word: &str| !word.is_empty() && word.chars().all(|next| ":=".contains(next));
    let mut joined: Vec<String> = Vec::new();
    let mut continues = false;
    for word in words {
        match joined.last_mut() {
            Some(last) if continues || is_break(word) => last.push_str(word),
            _ => joined.push(word.clone()),
        }
        continues = is_break(word);
    }
    joined
}

/// Position of the cursor: the command, before its first argument.
struct Position<'a> {
    command: &'a Command,
    store: Option<String>,
    /// True if `--slots` is among the options.
    slots: bool,
}

impl<'a> Position<'a> {
    /// The position after these words; `None` if the first argument of the command is given already, or an option waits
    /// for its value.
    fn after(root: &'a Command, words: &[String]) -> Option<Self> {
        let mut position = Self { command: root, store: None, slots: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                return None;
            } else if let Some(option) = word.strip_prefix("--") {
                let (name, value) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (option, None),
                };
                let found = position.command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
                position.slots |= name == "slots";
                let value = match value {
                    None if needs_value(found) => Some(words.next()?.as_str()),
                    value => value,
                };
                if name == "store" {
                    position.store = value.map(str::to_owned);
                }
            } else if let Some(shorts) = word.strip_prefix('-').filter(|shorts| !shorts.is_empty()) {
                if position.value_is_next(shorts)? {
                    words.next()?;
                }
            } else {
                position.command = position.command.find_subcommand(word)?;
            }
        }
        Some(position)
    }

    /// True if the last of these short options needs a value, which is the next word.
    fn value_is_next(&self, shorts: &str) -> Option<bool> {
        for (at, short) in shorts.char_indices() {
            let found = self.command.get_arguments().find(|arg| arg.get_short() == Some(short))?;
            if needs_value(found) {
                return Some(at + short.len_utf8() == shorts.len());
            }
        }
        Some(false)
    }
}

fn needs_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.min_values() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &[&str]) -> Option<CommandLine> {
        CommandLine::parse(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    fn wanted(line: &[&str]) -> Option<WantedNames> {
        at(line).map(|line| line.wanted)
    }

    #[test]
    fn a_name_fits_where_a_command_takes_one() {
        use WantedNames::{Groups, Keys};
        for command in ["run", "elect", "hold", "acquire", "steal", "leader", "resign", "status", "history"] {
            assert_eq!(wanted(&[command, ""]), Some(Keys), "{command}");
            assert_eq!(wanted(&[command, "bill"]), Some(Keys), "{command}");
            assert_eq!(wanted(&[command, "billing", ""]), None, "{command} has its name");
        }
        for command in ["ls", "watch", "forget"] {
            assert_eq!(wanted(&[command, ""]), Some(Keys), "{command}");
        }
        assert_eq!(wanted(&["slots", ""]), Some(Groups));
        assert_eq!(wanted(&["run", "--slots", "3", ""]), Some(Groups));
        assert_eq!(wanted(&["kv", "get", ""]), Some(Keys));
        for line in
            [&[""][..], &["st"], &["kv", ""], &["renew", ""], &["completions", ""], &["nonsense", ""], &[]]
        {
            assert_eq!(wanted(line), None, "{line:?}");
        }
    }

    #[test]
    fn options_and_their_values_are_no_names() {
        assert!(wanted(&["status", "--js"]).is_none());
        assert!(wanted(&["run", "--ttl", ""]).is_none(), "it is the value of the option");
        assert!(wanted(&["run", "-w", ""]).is_none());
        assert!(wanted(&["run", "--ttl", "5s", "-w", "2", "-qn", ""]).is_some());
        assert!(wanted(&["run", "--ttl=5s", "-w2", "--strict", ""]).is_some());
        assert!(wanted(&["leader", "--wait", ""]).is_some(), "its value is optional, and is written with =");
        assert!(wanted(&["run", "x", "--", ""]).is_none());
        assert!(wanted(&["run", "--", ""]).is_none());
        assert!(wanted(&["run", "--no-such-option", ""]).is_none());
    }

    #[test]
    fn the_store_of_the_line_counts_also_if_bash_has_split_it() {
        let store = |line: &[&str]| at(line).unwrap().store;
        let url = Some("file:///x".to_owned());
        for line in [
            &["--store", "file:///x", "status", ""][..],
            &["status", "--store=file:///x", ""],
            &["status", "--store", "file", ":", "///x", ""],
            &["--store", "=", "file", ":", "///x", "status", ""],
        ] {
            assert_eq!(store(line), url, "{line:?}");
        }
        assert_eq!(store(&["status", ""]), None);
        assert_eq!(wanted(&["status", "--store", "file", ":", ""]), None, "the URL is not finished");
    }

    #[test]
    fn of_a_name_with_a_colon_only_the_rest_is_replaced() {
        let line = at(&["status", "a", ":", "b"]).unwrap();
        assert_eq!((line.typed.as_str(), line.kept), ("a:b", 2));
        let line = at(&["status", "a", ":"]);
        assert_eq!(line.map(|line| (line.typed, line.kept)), Some(("a:".to_owned(), 1)));
        let line = at(&["status", "a:b"]).unwrap();
        assert_eq!((line.typed.as_str(), line.kept), ("a:b", 0));
    }
}
