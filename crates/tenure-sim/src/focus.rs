/// A bias of a seed towards one kind of situation, so that events that are rare there happen often.
///
/// A focus never changes what is correct: the standard rules must pass every seed under every focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Focus {
    /// No bias: the full mixture.
    #[default]
    None,
    /// Clocks at the two ends of the bound, holders cut off from the store, eager contenders.
    Clocks,
    /// Slow reads, and holders that are cut off after a renewal.
    SlowReads,
    /// One or two machines, witnesses, restarts, and files that look like witnesses.
    Witnesses,
    /// Records deleted during other operations, on a store with a clock.
    Deletions,
    /// Records deleted again and again, on a store whose clock shows whole seconds.
    Ticks,
    /// Records restored with their old versions, among processes that are paused or rest for a long time.
    Restores,
    /// A store that restarts its version counter when a key is created again.
    Recounting,
    /// A store without a clock, short terms, restarts.
    Clockless,
    /// A store without a clock, on which records are deleted and restored.
    GoingBack,
    /// Stealers, one after another.
    Stealers,
    /// Lost answers, balancers and late requests.
    Unknowns,
    /// Work that does not stop in time.
    SlowWork,
    /// Work that cannot be stopped, stealers, and programs that copy fields that they do not know.
    Stubborn,
    /// Foreign bytes in place of the record.
    Foreign,
    /// Processes with the same name, and overlapping handles.
    Twins,
    /// Scripts with handles, whose commands are killed or cancelled.
    Scripts,
    /// A store whose server restarts, and may bring back an older snapshot.
    Restarts,
    /// Outages of the store, in half of the seeds so short that no holder may lose its lease.
    Outages,
    /// A store that lies.
    Liars,
    /// Long fair contention after healing.
    Fairness,
    /// Only faults that no holder may notice.
    Calm,
    /// The world of the primitives: any mixture of elections, slots, plain keys, sets and jobs.
    Primitives,
    /// Elections among nodes of the same name.
    ElectedTwins,
    /// Long fair contention for elections after healing.
    ElectedInTurn,
    /// Sets of leases, all or nothing.
    Sets,
    /// Plain keys.
    Keys,
    /// Groups of slots that are resized often.
    Slots,
    /// Jobs that run once per period.
    Jobs,
}

impl Focus {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::None,
        Self::Clocks,
        Self::SlowReads,
        Self::Witnesses,
        Self::Deletions,
        Self::Ticks,
        Self::Restores,
        Self::Recounting,
        Self::Clockless,
        Self::GoingBack,
        Self::Stealers,
        Self::Unknowns,
        Self::SlowWork,
        Self::Stubborn,
        Self::Foreign,
        Self::Twins,
        Self::Scripts,
        Self::Restarts,
        Self::Outages,
        Self::Liars,
        Self::Fairness,
        Self::Calm,
        Self::Primitives,
        Self::ElectedTwins,
        Self::ElectedInTurn,
        Self::Sets,
        Self::Keys,
        Self::Slots,
        Self::Jobs,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Clocks => "clocks",
            Self::SlowReads => "slow-reads",
            Self::Witnesses => "witnesses",
            Self::Deletions => "deletions",
            Self::Ticks => "ticks",
            Self::Restores => "restores",
            Self::Recounting => "recounting",
            Self::Clockless => "clockless",
            Self::GoingBack => "going-back",
            Self::Stealers => "stealers",
            Self::Unknowns => "unknowns",
            Self::SlowWork => "slow-work",
            Self::Stubborn => "stubborn",
            Self::Foreign => "foreign",
            Self::Twins => "twins",
            Self::Scripts => "scripts",
            Self::Restarts => "restarts",
            Self::Outages => "outages",
            Self::Liars => "liars",
            Self::Fairness => "fairness",
            Self::Calm => "calm",
            Self::Primitives => "primitives",
            Self::ElectedTwins => "elected-twins",
            Self::ElectedInTurn => "elected-in-turn",
            Self::Sets => "sets",
            Self::Keys => "keys",
            Self::Slots => "slots",
            Self::Jobs => "jobs",
        }
    }

    /// True if its seeds are histories of the world of the primitives.
    pub fn is_of_primitives(self) -> bool {
        matches!(
            self,
            Self::Primitives
                | Self::ElectedTwins
                | Self::ElectedInTurn
                | Self::Sets
                | Self::Keys
                | Self::Slots
                | Self::Jobs
        )
    }

    /// The focus with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|focus| focus.name() == name)
    }
}
