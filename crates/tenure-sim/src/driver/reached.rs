use crate::tally::counted;

counted! {
    /// Things that a seed of the driver reached. One that is never reached proves nothing.
    Reached {
        Call: 100_000, "requests that arrived at the store";
        Connected: 5_000, "coordinators connected";
        Grant: 10_000, "leases granted";
        Renewal: 20_000, "renewals";
        Handle: 1_000, "handles granted";
        Resumed: 50, "handles resumed";
        Term: 300, "terms of campaigns";
        LeaderSeen: 500, "leaders seen by observers of elections";
        Steal: 1_000, "holders asked to release";
        Slot: 3_000, "slots granted";
        GroupFull: 500, "groups of slots found full";
        SizeRefused: 300, "contenders with another number of slots refused";
        Resized: 100, "groups of slots resized";
        Set: 200, "sets of leases granted";
        SetDenied: 500, "sets of leases denied";
        SetLost: 20, "sets of leases that lost one";
        EntryCreated: 1_000, "entries of plain keys created";
        EntryUpdated: 500, "entries changed by their revision";
        EntryConflict: 2_000, "changes of entries refused by the revision";
        EntryFound: 1_000, "entries read";
        EntryRenewed: 300, "entries renewed by their owner";
        EntryReleased: 300, "entries released by their owner";
        ReleasedInside: 300, "leases released from inside their work";
        Fenced: 1_000, "fenced writes accepted";
        Observed: 5_000, "observations";
        Watched: 5_000, "changes reported by a watch";
        ShutDown: 1_000, "coordinators shut down";
        Preempted: 5_000, "threads preempted in the middle of their code";
        Paused: 500, "processes paused";
        Suspended: 500, "machines suspended, the clock went on";
        KeeperStalled: 500, "keepers stalled";
        UserStalled: 500, "executors of users stalled";
        KeeperDied: 500, "keepers died, their process did not";
        Killed: 500, "processes killed";
        Outage: 500, "outages of the store";
        StoreDown: 3_000, "requests during an outage";
        Rotated: 500, "rotations of credentials";
        Denied: 1_000, "calls denied";
        // Only with the focus on credentials.
        OutlastedDenials: 0, "acquires that outlasted a rotation";
        ReportedDenial: 0, "acquires that reported a denial";
        StorePanicked: 500, "panics in the code of the store";
        UserPanicked: 1_000, "panics in the code of users";
        HintLost: 2_000, "hints lost";
        DiskFailed: 1_000, "failures of the disk of witnesses";
        DiskSlow: 1_000, "slow answers of that disk";
        PageRead: 500, "pages of logbooks and verdicts read";
        PageFailed: 100, "failures of the disk of pages";
        PageTorn: 20, "pages that were cut short";
        PageForeign: 20, "pages that were written on another clock";
        NoThread: 500, "threads that could not be started";
    }
}
