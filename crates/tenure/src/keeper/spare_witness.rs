use crate::host::witness::Lock;

/// A witness that is ready before a lease needs it.
///
/// It lists no nonce of a record, so it proves nothing until a lease uses it. Nonces are never listed in advance: see
/// [`LockedFile::list`](crate::host::witness::locked_file::LockedFile::list).
///
/// The first three leases of a coordinator create their own witnesses. Most commands acquire one or two, and a file for
/// another one would only cost time.
#[derive(Debug, Default)]
pub(super) struct SpareWitness {
    ready: Option<Lock>,
    /// True while the file is being created.
    pending: bool,
    /// Number of grants of leases with a witness, up to [`REPEATED`].
    grants: u32,
    /// True if no further lease is granted.
    retired: bool,
}

impl SpareWitness {
    /// The spare witness, for a lease that needs one now.
    pub(super) fn take(&mut self) -> Option<Lock> {
        self.ready.take()
    }

    /// A lease with a witness was granted. True if the caller must create the next witness.
    pub(super) fn begin(&mut self) -> bool {
        self.grants = (self.grants + 1).min(REPEATED);
        let wanted = self.grants >= REPEATED && self.ready.is_none() && !self.pending && !self.retired;
        self.pending |= wanted;
        wanted
    }

    /// Keeps the one that was created. Returns it if it is not needed any more.
    pub(super) fn made(&mut self, made: Option<Lock>) -> Option<Lock> {
        self.pending = false;
        if self.retired {
            return made;
        }
        self.ready = made;
        None
    }

    /// Keeps none from now on. Returns the present one.
    pub(super) fn retire(&mut self) -> Option<Lock> {
        self.retired = true;
        self.ready.take()
    }
}

/// Number of grants after which a coordinator is taken to acquire further leases.
const REPEATED: u32 = 3;
