//! Counts of the faults that happened and the states that were reached. A fault that never happened proves nothing.

/// Defines an enum of things to count, each with its words and its quota per thousand seeds.
macro_rules! counted {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $quota:literal, $words:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $words] $variant,)*
        }

        impl $name {
            /// All of them, in the order of the report.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The thing that is counted, in words.
            pub fn words(self) -> &'static str {
                match self { $(Self::$variant => $words,)* }
            }

            /// Least count per thousand seeds. A run below it fails.
            pub fn quota(self) -> u64 {
                match self { $(Self::$variant => $quota,)* }
            }
        }
    };
}

pub(crate) use counted;

counted! {
    /// The faults that the world injects.
    Fault {
        RequestLost: 70_000, "request lost";
        AnswerLost: 90_000, "answer lost after the store had acted";
        Late: 40_000, "request delivered after its sender gave up";
        Duplicated: 10_000, "request duplicated";
        Balanced: 10_000, "request retried by a balancer, only the second answer returned";
        Reset: 10_000, "connection reset, the request continues";
        Unreachable: 10_000, "connection refused, nothing was sent";
        ThrottledBefore: 10_000, "throttled, nothing was done";
        ThrottledAfter: 2_000, "throttled after the write was applied";
        Spike: 10_000, "latency spike, up to three ttl";
        CutFull: 2_000, "partition: nothing passes";
        CutRequests: 2_000, "partition: requests are lost";
        CutAnswers: 2_000, "partition: answers are lost";
        CutReads: 2_000, "partition: reads only";
        CutWrites: 2_000, "partition: writes only";
        Storm: 3_000, "storm of 409, 429 and 503";
        Pause: 20_000, "process paused for 0.1 to 10 ttl";
        Crash: 10_000, "process killed, restarted under the same name";
        Reboot: 1_000, "machine rebooted";
        Orphan: 700, "process killed, its child keeps the witness and acts";
        WallJump: 7_000, "wall clock jumped by a minute, an hour or ten years";
        ClockBeyond: 20, "clock ten times beyond its bound";
        ClockFrozen: 200, "machine suspended with its clock stopped";
        Deleted: 500, "record deleted";
        Restored: 500, "record restored from an older copy";
        Foreign: 200, "record replaced by foreign bytes";
        StoreStepped: 1_000, "store clock stepped forward";
        Outage: 1_000, "outage of the store";
        StoreRestarted: 0, "server restarted, perhaps with an older snapshot";
        WitnessCopied: 700, "witness file copied";
        WitnessEmpty: 700, "witness file found empty on a machine made from an image";
        Unlisted: 5_000, "nonce could not be listed in the witness";
        Stalled: 1_000, "keeper preempted before it extended the belief";
        Unstoppable: 10_000, "work that cannot be stopped";
        FieldCopied: 8_000, "field about work that cannot be stopped copied into another write";
        Lied: 3, "lying store";
    }
}

counted! {
    /// States that a run must reach: rare ones, for which the protocol is designed.
    Sometimes {
        PausedHolderReplaced: 3_000, "a live paused holder was replaced";
        ResolvedAfterTimeout: 10_000, "own write found by its nonce after a timeout";
        ResolvedAfterConflict: 2_000, "own write found by its nonce after a conflict";
        Raced: 30, "renewal and takeover within one millisecond";
        LateApplied: 3_000, "request applied after its sender gave up";
        StaleWriteStopped: 10_000, "stale write stopped by the fence";
        TokenGap: 70_000, "gap between two tokens";
        ReleaseLost: 1_000, "release that could not be written: the record lapses";
        EqualTime: 1_000, "two contenders wrote at the same nanosecond";
        ObserverSkipped: 20_000, "observer missed a term";
        WitnessTookOver: 5_000, "takeover because the witness showed that no process acts";
        CopySeen: 3_000, "copied witness inspected, not believed";
        EmptySeen: 3_000, "empty witness inspected, not believed";
        LockedSeen: 200_000, "locked witness inspected";
        Resumed: 1_000, "handle resumed after a restart";
        ResumeRefused: 2_000, "stale handle refused";
        ScriptRenewed: 10_000, "handle of a script renewed by a command";
        RenewalInDoubt: 200, "command gave up a renewal that had landed, and vacated nothing";
        RenewalUnheard: 100, "renewal landed after its command was killed or had given up";
        CommandKilled: 50, "command killed after its renewal had landed";
        RenewalRefused: 2_000, "stale handle of a script refused";
        CopyRefused: 600, "copy of a handle refused because another copy was used first";
        ReleasedByHandle: 7_000, "term released by its handle";
        ReleasedLate: 500, "term released by its handle after the deadline";
        RevokeAcknowledged: 2_000, "revocation acknowledged by its holder";
        RevokeRanOut: 1_000, "revocation ran out without an acknowledgement";
        StealerJoined: 50, "second stealer joined the wait";
        WentBack: 7_000, "token went back, and this was reported";
        CorruptDenied: 4_000, "nothing granted after a token went back, without a store clock";
        ForeignDenied: 1_000, "nothing granted over a foreign record";
        LatchedFirst: 70, "latch that beat the extension";
        LearnedTooLate: 300, "grant confirmed too late or no longer wanted, and vacated unused";
        CancelledInFlight: 300, "acquire cancelled while its grant may still land";
        LapsedUnderWork: 7_000, "lease left to lapse because its work still ran";
        WarmGrant: 20_000, "grant without a read";
        Aged: 3_000, "takeover of a version that is old by the store's clock";
        Recalled: 7_000, "version from before a restart seen again after it";
        Overlapping: 10_000, "second handle of one process granted";
        RepeatedVersion: 2, "write landed on a version that the store had used before";
        OrphanActed: 1_000, "child of a dead holder still acting, and no contender took over";
        Kept: 20_000, "record of work that cannot be stopped renewed without belief";
        StealerAnswered: 700, "stealer denied because the work cannot be stopped, nothing revoked";
        TreeOutlived: 250, "record run out while its tree was alive";
        LiarRefused: 3, "lying store refused at connect";
    }
}

counted! {
    /// States that a run of the world of the primitives must reach.
    Met {
        LateApplied: 10_000, "request applied after its sender gave up";
        Elected: 50_000, "campaigner elected";
        Resigned: 50_000, "leader resigned, and let the others try first";
        SuccessorSeen: 20_000, "former leader saw its successor, and campaigned again";
        LeaderShown: 20_000, "change of the leader shown to a watcher";
        Overtaken: 2_000, "answer to a watcher overtaken by a newer one";
        SlotHeld: 90_000, "slot of a group held";
        SlotLost: 2_000, "slot of a group lost";
        ShrinkSeen: 5_000, "slot granted, and released because the size had changed or was unknown";
        HeldBeyondSize: 2_500, "slots beyond the size kept by their holders after a shrink";
        SlotFreed: 3_000, "slot freed under fair contention while a contender waited";
        GroupFull: 9_000, "group of slots found full";
        LateListing: 300, "listing that was late";
        WaitedInFullGroup: 50, "contender waited in a full group, and its calls were counted";
        SizeRefused: 50_000, "contender with another size refused";
        Resized: 10_000, "group of slots resized";
        EntryCreated: 60_000, "entry created";
        EntryUpdated: 150_000, "entry changed by its revision";
        EntryConflict: 400_000, "change refused by the revision";
        EntryFound: 500_000, "entry read";
        EntryRenewed: 40_000, "entry renewed by its owner";
        EntryReleased: 25_000, "entry released by its owner";
        EntryResolved: 10_000, "change without a clear answer found by its nonce";
        EntryRetried: 4_000, "change applied, and sent again by a balancer with a conflict as the answer";
        EntryInDoubt: 8_000, "operation whose write may have been applied, and which said so";
        EntryDenied: 150_000, "operation denied, and nothing was changed";
        RevisionWentBack: 10_000, "revision went back after a deletion, and this was reported";
        SetHeld: 30_000, "set of leases held";
        SetDenied: 25_000, "set of leases denied, everything released";
        SetLost: 800, "set of leases ended by the loss of one";
        JobSucceeded: 300, "success of a job recorded";
        JobDueAgain: 500, "job granted again after its period";
        JobSkipped: 4_000, "job skipped, because its period was not over";
        JobUnclear: 10_000, "job refused, because the clocks of the store and of the process differ";
    }
}

counted! {
    /// Plain numbers for the closing table.
    Number {
        Events: 0, "events";
        Nanos: 0, "simulated nanoseconds";
        Reads: 0, "reads";
        Writes: 0, "writes";
        Grants: 0, "grants applied";
        Terms: 0, "terms believed";
        Renewals: 0, "renewals";
        Releases: 0, "releases applied";
        Losses: 0, "terms lost other than by release";
        Unknown: 0, "unknown outcomes";
        Resolved: 0, "unknown outcomes resolved by reading";
        ResourceWrites: 0, "writes at the fenced resource";
        Observations: 0, "observations";
    }
}

/// The counts of one seed, or of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    faults: [u64; Fault::ALL.len()],
    sometimes: [u64; Sometimes::ALL.len()],
    met: [u64; Met::ALL.len()],
    numbers: [u64; Number::ALL.len()],
}

impl Tally {
    /// All counts at zero.
    pub fn new() -> Self {
        Self {
            faults: [0; Fault::ALL.len()],
            sometimes: [0; Sometimes::ALL.len()],
            met: [0; Met::ALL.len()],
            numbers: [0; Number::ALL.len()],
        }
    }

    /// Counts a fault.
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.faults[fault as usize] += 1;
    }

    /// Counts a reached state.
    pub(crate) fn reached(&mut self, what: Sometimes) {
        self.sometimes[what as usize] += 1;
    }

    /// Counts a state of the world of the primitives.
    pub(crate) fn met(&mut self, what: Met) {
        self.met[what as usize] += 1;
    }

    /// Counts one more.
    pub(crate) fn count(&mut self, number: Number) {
        self.numbers[number as usize] += 1;
    }

    /// Sets a number that is known at the end.
    pub(crate) fn set(&mut self, number: Number, value: u64) {
        self.numbers[number as usize] = value;
    }

    /// Count of a fault.
    pub fn faults(&self, fault: Fault) -> u64 {
        self.faults[fault as usize]
    }

    /// Count of a reached state.
    pub fn sometimes(&self, what: Sometimes) -> u64 {
        self.sometimes[what as usize]
    }

    /// Count of a state of the world of the primitives.
    pub fn of_primitives(&self, what: Met) -> u64 {
        self.met[what as usize]
    }

    /// A plain number.
    pub fn number(&self, number: Number) -> u64 {
        self.numbers[number as usize]
    }

    /// Adds the counts of other seeds.
    pub fn add(&mut self, other: &Self) {
        let pairs = self.faults.iter_mut().zip(&other.faults);
        let pairs = pairs.chain(self.sometimes.iter_mut().zip(&other.sometimes));
        let pairs = pairs.chain(self.met.iter_mut().zip(&other.met));
        for (mine, theirs) in pairs.chain(self.numbers.iter_mut().zip(&other.numbers)) {
            *mine += theirs;
        }
    }

    /// The counts of the world of one key that are below their quota for this number of seeds, in words.
    pub fn below_quota(&self, seeds: u64) -> Vec<String> {
        let faults = Fault::ALL.iter().map(|fault| (fault.words(), fault.quota(), self.faults(*fault)));
        let sometimes = Sometimes::ALL.iter().map(|it| (it.words(), it.quota(), self.sometimes(*it)));
        missed(faults.chain(sometimes), seeds)
    }

    /// The same for the world of the primitives.
    pub fn below_quota_of_primitives(&self, seeds: u64) -> Vec<String> {
        let faults =
            FAULTS_OF_PRIMITIVES.iter().map(|(fault, quota)| (fault.words(), *quota, self.faults(*fault)));
        let met = Met::ALL.iter().map(|it| (it.words(), it.quota(), self.of_primitives(*it)));
        missed(faults.chain(met), seeds)
    }

    /// Network faults of the driver's world that are below their quota for this number of seeds, in words.
    pub(crate) fn below_quota_of_driver(&self, seeds: u64) -> Vec<String> {
        let faults =
            FAULTS_OF_DRIVER.iter().map(|(fault, quota)| (fault.words(), *quota, self.faults(*fault)));
        missed(faults, seeds)
    }
}

/// The counts below their quota per thousand seeds, in words.
pub(crate) fn missed(counts: impl Iterator<Item = (&'static str, u64, u64)>, seeds: u64) -> Vec<String> {
    let missed = counts.filter_map(|(words, quota, count)| {
        let wanted = quota * seeds / 1000;
        (count < wanted).then(|| format!("{words}: {count}, expected at least {wanted}"))
    });
    missed.collect()
}

/// The faults of the world of the primitives, each with its quota per thousand seeds.
const FAULTS_OF_PRIMITIVES: &[(Fault, u64)] = &[
    (Fault::RequestLost, 200_000),
    (Fault::AnswerLost, 250_000),
    (Fault::Late, 120_000),
    (Fault::Duplicated, 30_000),
    (Fault::Balanced, 30_000),
    (Fault::Reset, 30_000),
    (Fault::Unreachable, 40_000),
    (Fault::ThrottledBefore, 40_000),
    (Fault::ThrottledAfter, 5_000),
    (Fault::Spike, 40_000),
    (Fault::CutFull, 1_000),
    (Fault::CutRequests, 1_000),
    (Fault::CutAnswers, 1_000),
    (Fault::CutReads, 1_000),
    (Fault::CutWrites, 1_000),
    (Fault::Storm, 2_000),
    (Fault::Pause, 12_000),
    (Fault::Crash, 8_000),
    (Fault::WallJump, 4_000),
    (Fault::Deleted, 250),
    (Fault::StoreStepped, 1_000),
];

/// Network faults of the driver's world, each with its quota per thousand seeds.
const FAULTS_OF_DRIVER: &[(Fault, u64)] = &[
    (Fault::RequestLost, 10_000),
    (Fault::AnswerLost, 10_000),
    (Fault::Duplicated, 3_000),
    (Fault::Balanced, 3_000),
    (Fault::Reset, 3_000),
    (Fault::Unreachable, 3_000),
    (Fault::ThrottledBefore, 300),
    (Fault::ThrottledAfter, 100),
    (Fault::Spike, 5_000),
    (Fault::CutFull, 150),
    (Fault::CutRequests, 150),
    (Fault::CutAnswers, 150),
    (Fault::CutReads, 150),
    (Fault::CutWrites, 150),
    (Fault::Storm, 150),
];

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}
