//! The scripts: one for each operation, so that each is atomic on the server.

use std::sync::LazyLock;

use redis::{Cmd, Script};

/// One script of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Write,
    /// Reads the record, and sends it to the replicas once more.
    Confirm,
    /// Records the first sighting of a run.
    Sight,
    /// Records that the quarantine of a run is over.
    Clear,
    /// Checks the token of a fenced write, and runs its commands.
    Fence,
}

impl Operation {
    /// The command that runs the script by its hash. The server answers `NOSCRIPT` if it does not have the script, and
    /// has then done nothing.
    pub(crate) fn by_hash(self, keys: &[impl AsRef<[u8]>], arguments: &[&[u8]]) -> Cmd {
        command("EVALSHA", SCRIPTS[self as usize].get_hash(), keys, arguments)
    }

    /// The command that carries the text of the script. The server keeps the script.
    pub(crate) fn by_text(self, keys: &[impl AsRef<[u8]>], arguments: &[&[u8]]) -> Cmd {
        command("EVAL", TEXTS[self as usize], keys, arguments)
    }
}

fn command(name: &str, script: &str, keys: &[impl AsRef<[u8]>], arguments: &[&[u8]]) -> Cmd {
    let of_keys: usize = keys.iter().map(|key| key.as_ref().len()).sum();
    let of_arguments: usize = arguments.iter().map(|argument| argument.len()).sum();
    // With room for the number of keys, too.
    let bytes = name.len() + script.len() + 8 + of_keys + of_arguments;
    let mut command = Cmd::with_capacity(3 + keys.len() + arguments.len(), bytes);
    command.arg(name).arg(script).arg(keys.len());
    for key in keys {
        command.arg(key.as_ref());
    }
    command.arg(arguments);
    command
}

/// In the order of [`Operation`].
const TEXTS: [&str; 6] = [
    include_str!("read.lua"),
    include_str!("write.lua"),
    include_str!("confirm.lua"),
    include_str!("sight.lua"),
    include_str!("clear.lua"),
    include_str!("fence.lua"),
];

static SCRIPTS: LazyLock<[Script; 6]> = LazyLock::new(|| TEXTS.map(Script::new));
