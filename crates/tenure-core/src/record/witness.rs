/// Name of a witness: a file whose lock in the local kernel is held as long as any process acts under the term.
///
/// Each of the three fields alone can be copied or reused. Together they name one file of one boot of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Witness {
    /// The random name of the file.
    pub name: String,
    /// Its inode.
    pub inode: u64,
    /// The boot id of the machine, on stores of network reach.
    pub boot: Option<String>,
}

impl Witness {
    /// A file on this machine, for a store that no other machine sees.
    pub fn new(name: impl Into<String>, inode: u64) -> Self {
        Self { name: name.into(), inode, boot: None }
    }

    /// Adds the boot id of the machine.
    pub fn with_boot(self, boot: impl Into<Option<String>>) -> Self {
        Self { boot: boot.into(), ..self }
    }
}
