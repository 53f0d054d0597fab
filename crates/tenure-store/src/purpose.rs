/// Meaning of a write for other participants.
///
/// A store may use it to wake contenders, to keep tokens beside the entries, and to hold back writes after a restart.
/// A store must not use it for the condition of the write, and may ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// A contender becomes the holder of a lease.
    Grant {
        /// The token of the grant, which is greater than every earlier token of the key.
        token: u64,
    },
    /// A holder keeps what it has.
    Renewal,
    /// A participant continues a term by its handle, which it or another participant may have used before.
    Resumption,
    /// A holder gives up what it has.
    Release,
    /// Every other write: a plant, a revocation, a change of a plain key, the size of a group.
    #[default]
    Change,
}
