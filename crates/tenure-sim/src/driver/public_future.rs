use crate::tally::counted;

counted! {
    /// The futures and streams of the public interface that users drop. The quota is that of the drops after one poll, and of
    /// those after more polls.
    PublicFuture {
        Connect: 1, "connect";
        Shutdown: 1, "shutdown";
        Acquire: 1, "acquire";
        TryAcquire: 1, "try_acquire";
        AcquireHandle: 1, "acquire_handle";
        Run: 1, "run";
        Lost: 1, "lost";
        Cancelled: 1, "cancelled";
        States: 1, "states of a lease";
        Renewals: 1, "renewals of a lease";
        Renew: 1, "renew";
        Release: 1, "release";
        RenewHandle: 1, "renew of a handle";
        Resume: 1, "resume of a handle";
        ReleaseHandle: 1, "release of a handle";
        Observe: 1, "observe";
        ObserveAll: 1, "observe_all";
        Holders: 1, "holders";
        Watch: 1, "watch";
        FencedWrite: 1, "write of a fenced value";
        FencedSeal: 1, "seal of a fenced value";
        FencedRead: 1, "read of a fenced value";
        Campaign: 1, "campaign";
        Leaders: 1, "leaders of an election";
        RunIfLeader: 1, "run_if_leader";
        Resign: 1, "resign of a term";
        ResignElection: 1, "resign of an election";
        RunElection: 1, "run of an election";
        AcquireSlot: 1, "acquire of a slot";
        TryAcquireSlot: 1, "try_acquire of a slot";
        GroupSize: 1, "size of a group";
        GroupResize: 1, "resize of a group";
        GroupHolders: 1, "holders of a group";
        AcquireSet: 1, "acquire of a set";
        TryAcquireSet: 1, "try_acquire of a set";
        SetLost: 1, "lost of a set";
        SetRun: 1, "run of a set";
        SetRelease: 1, "release of a set";
        KeyCreate: 1, "create_if_absent of a key";
        KeySet: 1, "compare_and_set of a key";
        KeyGet: 1, "get of a key";
        KeyRenew: 1, "renew of a key";
        KeyRelease: 1, "release of a key";
        KeyList: 1, "list of keys";
    }
}
