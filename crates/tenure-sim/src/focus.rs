/// A corner of the world in which a seed may be made to spend its time, so that what is rare there happens often.
///
/// A focus never changes what is right: the unmutated machine must pass every seed under every focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Focus {
    /// The whole mixture.
    #[default]
    None,
    /// Clocks at the two ends of the bound, holders cut off from the store, eager contenders.
    Clocks,
    /// Slow reads, and holders that are cut off after a renewal.
    SlowReads,
    /// One machine, witnesses, restarts, and files that look like witnesses.
    Witnesses,
    /// Records deleted in the middle of things, on a store with a clock.
    Deletions,
    /// Records restored with the versions they had, among processes that rest for long.
    Restores,
    /// A store that counts versions anew when a key is made anew.
    Recounting,
    /// A store without a clock, short terms, restarts.
    Clockless,
    /// A store without a clock, on which records are deleted and restored.
    GoingBack,
    /// Stealers, one after the other.
    Stealers,
    /// Lost answers, balancers and requests that come late.
    Unknowns,
    /// Work that does not stop when it should.
    SlowWork,
    /// Work that cannot be stopped, stealers, and programs that copy what they do not know.
    Stubborn,
    /// Foreign bytes instead of the record.
    Foreign,
    /// Twins under one name and overlapping handles.
    Twins,
    /// Scripts with handles, whose commands are killed and given up.
    Scripts,
    /// A store that lies.
    Liars,
    /// Long fair contention after healing.
    Fairness,
    /// Calm weather.
    Calm,
}

impl Focus {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::None,
        Self::Clocks,
        Self::SlowReads,
        Self::Witnesses,
        Self::Deletions,
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
        Self::Liars,
        Self::Fairness,
        Self::Calm,
    ];

    /// Its name, as the command takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Clocks => "clocks",
            Self::SlowReads => "slow-reads",
            Self::Witnesses => "witnesses",
            Self::Deletions => "deletions",
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
            Self::Liars => "liars",
            Self::Fairness => "fairness",
            Self::Calm => "calm",
        }
    }

    /// The focus of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|focus| focus.name() == name)
    }
}
