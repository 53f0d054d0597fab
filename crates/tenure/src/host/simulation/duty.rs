/// A duty of the driver, with the harm that its neglect does. The simulation shows that harm: for each duty, one mutant neglects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Duty {
    /// Every call has a timeout. Without it, a call that hangs blocks its lease for ever.
    TimeCalls,
    /// A call without an answer in time may have had its effect. A grant that counts as refused is never vacated.
    TimeoutIsUnknown,
    /// A call whose code panicked may have had its effect, too.
    PanicIsUnknown,
    /// A panic in the code of a store costs one call, and not every lease of the process.
    CatchPanics,
    /// The clock is read for each input. An answer that counts from an earlier instant makes a version look older than it
    /// is.
    ReadClockForEachInput,
    /// A timer moves when the machine asks for another instant. Otherwise a renewal comes too late.
    MoveTimers,
    /// A contender that listens to hints reads all the same. A hint may be lost.
    PollDespiteHints,
    /// A write waits for at most one write interval of the store, however many contenders write.
    BoundPacing,
    /// A call that waits for a place goes before others if it keeps a lease. Otherwise polls cost a lease.
    RenewFirst,
    /// One call in four is a poll, if one waits. Otherwise renewals keep every contender waiting.
    LetPollsThrough,
    /// A place is given back when its call ends, times out or panics. Otherwise no call is sent any more.
    GivePlacesBack,
    /// A call that waits for a place is withdrawn when its lease no longer needs it.
    WithdrawCalls,
    /// A failing store gets at most twice the usual calls. Otherwise it meets a burst when it returns.
    PaceInTrouble,
    /// The keeper remembers a key as long as a lease needs it.
    KeepUsedKeys,
    /// The keeper watches a cancelled acquire until its requests can no longer have an effect.
    WatchCancelledAcquires,
    /// The belief ends before the keeper learns of the release.
    LatchAtRelease,
    /// A released lease is not renewed.
    StopRenewingAtRelease,
    /// The belief ends when the machine reports a loss.
    LatchAtLoss,
    /// The belief ends when the keeper does.
    LatchWhenKeeperEnds,
    /// Work is counted while it runs. Without the count, the record is vacated under it.
    CountWork,
    /// The end of the last work is reported to the keeper, which waits for it.
    TellDrained,
    /// The first write waits for the witness that its record names.
    WaitForWitness,
    /// An answer that arrives before the witness is kept.
    KeepEarlyAnswers,
    /// A witness is named only after its lock was seen to hold.
    VerifyLocks,
    /// A nonce is listed in the witness before its request is sent.
    ListNonceFirst,
    /// The witness stays locked as long as work can run under the lease.
    LockWitnessUnderWork,
    /// A release is answered after its witness is gone. The program may exit with the answer.
    RemoveWitnessBeforeReply,
    /// A shutdown ends requests that still wait.
    EndRequestsAtShutdown,
    /// Nothing is granted after a shutdown.
    RefuseAfterShutdown,
    /// The keeper vacates all leases before it ends.
    OutliveHandles,
    /// A call for a plain key without an answer in time may have had its effect. A change that counts as refused is found
    /// later, and taken for that of another participant.
    KeyTimeoutIsUnknown,
    /// A contender compares the number of slots of the group with its own.
    CompareGroupSize,
    /// A slot that was granted to a caller that has cancelled is released.
    ReleaseCancelledSlot,
    /// A contender for a slot listens to hints. Without them, a released slot stays unused for longer than a ttl.
    HearSlotHints,
    /// A set that is denied releases the leases that were granted.
    ReleaseDeniedSet,
    /// A set that loses one lease releases the others.
    ReleaseRestOfSet,
    /// A page of the logbook counts only on the clock on which it was written. On another clock its sightings look
    /// older than they are.
    CheckDomainOfPage,
}
