use redis::{Arg, Cmd};

use super::known_command::KnownCommand;
use crate::names::Names;

/// The commands of a fenced write, after the checks that need no server. A script cannot undo a command, so everything that
/// can be known to fail is refused before the first one runs.
#[derive(Debug, Default)]
pub(super) struct Commands<'a> {
    /// The words of each command.
    pub(super) words: Vec<Vec<&'a [u8]>>,
    /// The keys of all commands, each once.
    pub(super) keys: Vec<&'a [u8]>,
}

impl<'a> Commands<'a> {
    /// Checks the commands. The error is a sentence.
    pub(super) fn check(commands: &'a [Cmd], names: &Names) -> Result<Self, String> {
        let mut checked = Self::default();
        for command in commands {
            checked.add(command, names)?;
        }
        checked.keys.sort_unstable();
        checked.keys.dedup();
        let words: usize = checked.words.iter().map(Vec::len).sum();
        if words > WORDS_MAX {
            return Err(format!(
                "the commands have {words} words, and a script takes at most {WORDS_MAX}: write less at once"
            ));
        }
        Ok(checked)
    }

    fn add(&mut self, command: &'a Cmd, names: &Names) -> Result<(), String> {
        let place = self.words.len() + 1;
        let words: Vec<&[u8]> = command.args_iter().map(word).collect::<Option<_>>().ok_or_else(|| {
            format!("command {place} reads with a cursor, which a fenced write cannot: read before it")
        })?;
        let Some(name) = words.first() else { return Err(format!("command {place} has no name")) };
        let known = KnownCommand::named(name).ok_or_else(|| {
            let name: String = String::from_utf8_lossy(name).chars().take(40).collect();
            format!(
                "command {place} is {name:?}, which a fenced write cannot carry: it carries commands that read or change the \
                 keys that they name, and that do not block or change the connection, the scripts or the server"
            )
        })?;
        if words.len() > WORDS_OF_ONE_MAX {
            let (count, name) = (words.len(), known.name);
            return Err(format!(
                "command {place} ({name}) has {count} words, and a script can run it with at most {WORDS_OF_ONE_MAX}: split it"
            ));
        }
        let keys = if known.takes(words.len()) { known.keys(&words) } else { None };
        let keys = keys.ok_or_else(|| {
            format!("command {place} ({}) has the wrong number of arguments or keys", known.name)
        })?;
        for key in keys {
            if names.is_own(key) {
                let key = String::from_utf8_lossy(key);
                return Err(format!("command {place} ({}) names {key:?}, a key of Tenure", known.name));
            }
            self.keys.push(key);
        }
        self.words.push(words);
        Ok(())
    }
}

fn word(argument: Arg<&[u8]>) -> Option<&[u8]> {
    match argument {
        Arg::Simple(word) => Some(word),
        _ => None,
    }
}

/// Most words of one command: Lua passes arguments on its stack, which has room for about 8,000.
const WORDS_OF_ONE_MAX: usize = 7_000;

/// Most words of all commands. The server closes the connection of a client that sends more than 1,048,576.
const WORDS_MAX: usize = 500_000;

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::*;

    fn refusal(command: &Cmd) -> String {
        Commands::check(&[Cmd::set("ledger", 1), command.clone()], &Names::with("tenure:")).unwrap_err()
    }

    #[test]
    fn commands_that_block_or_change_connection_or_server_are_refused_by_name() {
        for name in [
            "MULTI",
            "EXEC",
            "WATCH",
            "SUBSCRIBE",
            "BLPOP",
            "BRPOPLPUSH",
            "XREAD",
            "SELECT",
            "EVAL",
            "EVALSHA",
            "FCALL",
            "SCRIPT",
            "FUNCTION",
            "FLUSHALL",
            "flushdb",
            "SWAPDB",
            "MOVE",
            "COPY",
            "MIGRATE",
            "RESTORE",
            "SORT",
            "KEYS",
            "SCAN",
            "CONFIG",
            "DEBUG",
            "SHUTDOWN",
            "REPLICAOF",
            "CLIENT",
            "WAIT",
            "HELLO",
            "AUTH",
            "QUIT",
            "RESET",
            "MONITOR",
            "ACL",
            "CLUSTER",
            "JSON.SET",
            "",
        ] {
            let error = refusal(cmd(name).arg("a").arg("b"));
            assert!(error.contains("command 2 is") && error.contains("cannot carry"), "{error}");
        }
        assert!(refusal(&Cmd::new()).contains("has no name"));
        assert!(refusal(cmd("HSCAN").arg("a").cursor_arg(0)).contains("cursor"));
    }

    #[test]
    fn keys_of_tenure_are_refused() {
        for key in ["tenure:{billing}", "tenure:restart", "tenure:fence:{ledger}"] {
            let error = refusal(&Cmd::del(&["a", key]));
            assert!(error.contains("a key of Tenure") && error.contains(key), "{error}");
        }
    }

    #[test]
    fn commands_that_cannot_succeed_are_refused_before_the_first_one_runs() {
        assert!(refusal(cmd("SET").arg("a")).contains("command 2 (SET) has the wrong number"));
        let many: Vec<String> = (0..WORDS_OF_ONE_MAX).map(|number| number.to_string()).collect();
        assert!(refusal(cmd("DEL").arg(&many)).contains("split it"));
        let commands = vec![cmd("SADD").arg("a").arg(&many[2..]).clone(); 80];
        assert!(Commands::check(&commands, &Names::with("")).unwrap_err().contains("write less"));
    }

    #[test]
    fn each_key_is_named_once() {
        let commands = [Cmd::set("a", 1), Cmd::incr("b", 1), Cmd::append("a", "x")];
        let checked = Commands::check(&commands, &Names::with("")).unwrap();
        assert_eq!(checked.keys, [b"a", b"b"]);
        assert_eq!(checked.words[1], [&b"INCRBY"[..], b"b", b"1"]);
    }
}
