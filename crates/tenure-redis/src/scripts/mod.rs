//! The scripts: one for each operation, so that each is atomic on the server.

use std::sync::LazyLock;

use redis::{Cmd, Script, cmd};

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
}

impl Operation {
    /// The command that runs the script by its hash. The server answers `NOSCRIPT` if it does not have the script, and
    /// has then done nothing.
    pub(crate) fn by_hash(self, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
        with(cmd("EVALSHA").arg(SCRIPTS[self as usize].get_hash()), keys, arguments)
    }

    /// The command that carries the text of the script. The server keeps the script.
    pub(crate) fn by_text(self, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
        with(cmd("EVAL").arg(TEXTS[self as usize]), keys, arguments)
    }
}

fn with(command: &mut Cmd, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
    command.arg(keys.len()).arg(keys).arg(arguments);
    command.clone()
}

/// In the order of [`Operation`].
const TEXTS: [&str; 5] = [
    include_str!("read.lua"),
    include_str!("write.lua"),
    include_str!("confirm.lua"),
    include_str!("sight.lua"),
    include_str!("clear.lua"),
];

static SCRIPTS: LazyLock<[Script; 5]> = LazyLock::new(|| TEXTS.map(Script::new));
