/// Part of a witness, to be locked by a process that acts under the lease.
///
/// The two parts tell who is alive: the processes that guard the work, or the work itself. A record whose witness has any
/// part locked is never replaced before its ttl has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WitnessPart {
    /// For a process that keeps the lease, or ends the work in time. The lease itself locks this part. After the ttl it
    /// means nothing: a process that is stopped is succeeded by its ttl.
    Guards,
    /// For the work, such as a child process. A contender that [heeds the tree](crate::Request::heed_tree) waits as long as
    /// this part is locked, also after the ttl.
    Tree,
    /// For a process that guards the work and ends only after it.
    Both,
}
