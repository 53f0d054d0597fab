use std::fmt;

/// One way in which a store breaks the contract while it declares the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Lie {
    // ── conditions ──────────────────────────────────────────────────────────────────────────────────────────────
    /// A create over an entry overwrites it: `If-None-Match: *` is taken and not looked at. MinIO before 2024-05
    /// compared the `*` literally.
    IgnoresCreate,
    /// A replace of any version overwrites what is there: `If-Match` is not looked at, as reported of DigitalOcean
    /// Spaces.
    IgnoresReplace,
    /// Every write is applied: Garage, the S3 interface of Google Cloud Storage, several emulators (`rclone serve s3`,
    /// `s3rver`).
    IgnoresAllConditions,
    /// The condition is looked at, the answer says conflict, and the entry is overwritten all the same, as by a gateway
    /// that checks after the fact.
    WritesDespiteConflict,
    /// A replace of a key that is not there creates it: MinIO before 2025-09-06; a Kubernetes Lease without its uid.
    CreatesOnReplaceOfMissing,
    /// Now and then the condition is skipped: every published MinIO, when the old entry cannot be read from enough
    /// disks.
    SkipsConditionsSometimes,
    /// A replace of the version before the current one is applied, as by a cache in front of the store.
    AcceptsPreviousVersion,
    /// First looks, then writes: SeaweedFS 3.97–4.17, RustFS, versitygw (up to 32 winners of 32), `s3s-fs`.
    RacyCheckThenAct,

    // ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// Says that everything was applied and writes nothing: a mock that was left in.
    SaysOkWithoutWriting,
    /// Every third write that was applied is answered with a conflict: a library or a balancer sends the request twice
    /// (object_store, kube-rs and the AWS SDK do, unless told not to).
    ConflictButWrites,
    /// A lost answer is reported as a conflict, for the same reason.
    UnknownAsConflict,
    /// A lost answer is reported as certainly no effect: object_store takes a connection that was cut after the
    /// request for one that was never made.
    UnknownAsRefused,
    /// A lost request is reported as applied: a client that writes behind.
    UnknownAsApplied,
    /// A write whose future is dropped half-way leaves half of its value: `O_EXCL` and then write, as in every file
    /// store without a rename.
    TornWrites,
    /// A write whose future is dropped keeps the key locked for ever.
    DroppedWriteWedges,

    // ── what is kept and shown ──────────────────────────────────────────────────────────────────────────────────
    /// The first reads after a write show what was there before it: NATS' direct get, ZooKeeper without sync, Consul by
    /// default, Tigris' global buckets.
    StaleReads,
    /// A key that was never written holds the empty value: a file store that makes the file in order to lock it.
    EmptyForMissing,
    /// Every seventh acknowledged write is gone: Redis at a failover.
    LosesWrites,
    /// Nothing is there after a restart: Redis without a log.
    ForgetsAfterRestart,
    /// After a restart every entry has another version: a counter that is kept in memory.
    RestampsOnRestart,
    /// Values are cut off at a kilobyte: a column that is too narrow, in MySQL without strict mode.
    TruncatesValues,
    /// Bytes that are not UTF-8 are replaced: a column of text.
    BendsBytes,
    /// Values that are too large are taken, and cut off at the largest size.
    TakesTooLarge,

    // ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────
    /// `Key` and `key` are one: macOS, Windows, MySQL's default collation.
    CaseInsensitiveKeys,
    /// `%41` and `A` are one: a gateway that decodes twice.
    DecodesKeys,
    /// Where `a` is, `a/b` cannot be: a plain file system.
    KeysAreFolders,

    // ── versions ────────────────────────────────────────────────────────────────────────────────────────────────
    /// The version is a hash of the bytes, and declared as unique: S3's ETag.
    ContentVersions,
    /// Versions come round again: inode, size and a coarse time, as object_store's local ETag.
    RepeatedVersions,
    /// Every write of a key has the same version: a weak ETag made of the name.
    SameVersionForEveryWrite,
    /// The version of an entry is different whenever one looks: ETags with an inode in them, from several servers
    /// behind one name.
    UnsteadyVersions,
    /// Versions count from one again when the key is created again: ZooKeeper's data version, Consul's lock index.
    VersionsRestartAfterDelete,

    // ── list, watch, clock ──────────────────────────────────────────────────────────────────────────────────────
    /// Temporary names are listed: object_store's local `#1` files after a crash.
    ListsForeignNames,
    /// The key that was created last is not listed: object stores with eventual lists.
    ListMisses,
    /// Keys are listed twice: Redis' SCAN.
    ListRepeats,
    /// `jobs` lists `jobs-old`: a prefix that goes by letters, as S3's does.
    ListsByLetters,
    /// Every list is the list of everything: a gateway that drops the query.
    ListsEverything,
    /// A watch is declared and never hints: Redis without keyspace notifications, inotify on a network file system.
    NeverHints,
    /// A clock is declared and answers have no time.
    NoTime,
    /// Now and then the time is an hour ago: a pool of servers, one of them with a wrong clock.
    ClockGoesBack,
    /// Ages are counted on a wall clock, and that is set: PostgreSQL, Redis.
    AgesJump,
    /// Ages are ten times too great: one unit of time taken for another. Healthy holders look dead.
    AgesRunFast,
    /// The time is told once and then repeated for ever: a proxy that caches the `Date` together with the answer.
    FrozenTime,

    // ── administration ──────────────────────────────────────────────────────────────────────────────────────────
    /// A removal takes whatever is there: a `DELETE` that knows no condition, as in most object stores.
    RemovesAnyVersion,
    /// A removal first looks, and then removes: read, compare, `unlink`, without a lock.
    RacyRemoval,
    /// Removal is offered where no clock keeps tokens growing: litestream's leases, which begin at one again.
    RemovesWithoutAClock,

    // ── machines ────────────────────────────────────────────────────────────────────────────────────────────────
    /// Not the store but the machines that use it: their clock stands still. A virtual machine that is stopped, and,
    /// while a laptop is suspended, every clock that does not count that, such as `std::time::Instant`.
    StoppedClock,
}

/// What is known of a lie.
struct LieProfile {
    name: &'static str,
    describe: &'static str,
    caught_by: &'static str,
    always: bool,
}

impl Lie {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::IgnoresCreate,
        Self::IgnoresReplace,
        Self::IgnoresAllConditions,
        Self::WritesDespiteConflict,
        Self::CreatesOnReplaceOfMissing,
        Self::SkipsConditionsSometimes,
        Self::AcceptsPreviousVersion,
        Self::RacyCheckThenAct,
        Self::SaysOkWithoutWriting,
        Self::ConflictButWrites,
        Self::UnknownAsConflict,
        Self::UnknownAsRefused,
        Self::UnknownAsApplied,
        Self::TornWrites,
        Self::DroppedWriteWedges,
        Self::StaleReads,
        Self::EmptyForMissing,
        Self::LosesWrites,
        Self::ForgetsAfterRestart,
        Self::RestampsOnRestart,
        Self::TruncatesValues,
        Self::BendsBytes,
        Self::TakesTooLarge,
        Self::CaseInsensitiveKeys,
        Self::DecodesKeys,
        Self::KeysAreFolders,
        Self::ContentVersions,
        Self::RepeatedVersions,
        Self::SameVersionForEveryWrite,
        Self::UnsteadyVersions,
        Self::VersionsRestartAfterDelete,
        Self::ListsForeignNames,
        Self::ListMisses,
        Self::ListRepeats,
        Self::ListsByLetters,
        Self::ListsEverything,
        Self::NeverHints,
        Self::NoTime,
        Self::ClockGoesBack,
        Self::AgesJump,
        Self::AgesRunFast,
        Self::FrozenTime,
        Self::RemovesAnyVersion,
        Self::RacyRemoval,
        Self::RemovesWithoutAClock,
        Self::StoppedClock,
    ];

    /// What such a store does, to be read after "a store that …".
    pub fn describe(self) -> &'static str {
        self.profile().describe
    }

    /// The clause of the suite that must catch it. Others may catch it too.
    pub fn caught_by(self) -> &'static str {
        self.profile().caught_by
    }

    /// Whether it lies at every opportunity, so that the check at connect, which looks at nothing but a few writes that
    /// must be refused, already refuses the store. Other lies show only in a race, after a fault, or in writes that
    /// succeed.
    pub fn always(self) -> bool {
        self.profile().always
    }

    fn profile(self) -> LieProfile {
        let seldom = |name, caught_by, describe| LieProfile { name, describe, caught_by, always: false };
        let always = |name, caught_by, describe| LieProfile { name, describe, caught_by, always: true };
        match self {
            Self::IgnoresCreate => always("ignores-create", "create", "overwrites when it should create"),
            Self::IgnoresReplace => {
                always("ignores-replace", "replace", "replaces whatever version is there")
            }
            Self::IgnoresAllConditions => always("ignores-all-conditions", "create", "looks at no condition"),
            Self::WritesDespiteConflict => {
                always("writes-despite-conflict", "create", "says conflict and overwrites")
            }
            Self::CreatesOnReplaceOfMissing => seldom(
                "creates-on-replace-of-missing",
                "replace",
                "creates the entry that a replace does not find",
            ),
            Self::SkipsConditionsSometimes => {
                seldom("skips-conditions-sometimes", "replace", "skips a condition now and then")
            }
            Self::AcceptsPreviousVersion => seldom(
                "accepts-previous-version",
                "replace",
                "takes the previous version for the current one",
            ),
            Self::RacyCheckThenAct => seldom("racy-check-then-act", "races", "looks first and writes later"),
            Self::SaysOkWithoutWriting => {
                always("says-ok-without-writing", "reads", "says ok and writes nothing")
            }
            Self::ConflictButWrites => {
                seldom("conflict-but-writes", "create", "answers some applied writes with a conflict")
            }
            Self::UnknownAsConflict => {
                seldom("unknown-as-conflict", "unknown", "reports a lost answer as a conflict")
            }
            Self::UnknownAsRefused => {
                seldom("unknown-as-refused", "unknown", "reports a lost answer as certainly no effect")
            }
            Self::UnknownAsApplied => {
                seldom("unknown-as-applied", "unknown", "reports a lost request as applied")
            }
            Self::TornWrites => {
                seldom("torn-writes", "unknown", "leaves half a value when a write is dropped")
            }
            Self::DroppedWriteWedges => {
                seldom("dropped-write-wedges", "unknown", "keeps a key locked when a write is dropped")
            }
            Self::StaleReads => seldom("stale-reads", "reads", "shows the previous entry for a while"),
            Self::EmptyForMissing => {
                seldom("empty-for-missing", "reads", "shows the empty value where there is nothing")
            }
            Self::LosesWrites => seldom("loses-writes", "keeps", "loses some acknowledged writes"),
            Self::ForgetsAfterRestart => {
                seldom("forgets-after-restart", "keeps", "has forgotten everything after a restart")
            }
            Self::RestampsOnRestart => {
                seldom("restamps-on-restart", "keeps", "gives every entry another version at a restart")
            }
            Self::TruncatesValues => seldom("truncates-values", "values", "cuts values off at a kilobyte"),
            Self::BendsBytes => seldom("bends-bytes", "values", "replaces bytes that are not UTF-8"),
            Self::TakesTooLarge => seldom("takes-too-large", "values", "takes values that are too large"),
            Self::CaseInsensitiveKeys => {
                seldom("case-insensitive-keys", "keys", "does not tell Key from key")
            }
            Self::DecodesKeys => seldom("decodes-keys", "keys", "does not tell %41 from A"),
            Self::KeysAreFolders => seldom("keys-are-folders", "keys", "cannot have a/b where a is"),
            Self::ContentVersions => {
                seldom("content-versions", "versions", "gives equal bytes an equal version")
            }
            Self::RepeatedVersions => seldom("repeated-versions", "versions", "gives out versions again"),
            Self::SameVersionForEveryWrite => {
                seldom("same-version-for-every-write", "versions", "gives every write the same version")
            }
            Self::UnsteadyVersions => {
                always("unsteady-versions", "versions", "shows another version at every look")
            }
            Self::VersionsRestartAfterDelete => {
                seldom("versions-restart-after-delete", "versions", "counts from one again after a deletion")
            }
            Self::ListsForeignNames => seldom("lists-foreign-names", "list", "lists its temporary names"),
            Self::ListMisses => seldom("list-misses", "list", "does not list the newest key"),
            Self::ListRepeats => seldom("list-repeats", "list", "lists keys twice"),
            Self::ListsByLetters => seldom("lists-by-letters", "list", "lists jobs-old under jobs"),
            Self::ListsEverything => seldom("lists-everything", "list", "lists everything under any prefix"),
            Self::NeverHints => seldom("never-hints", "watch", "declares a watch and never hints"),
            Self::NoTime => seldom("no-time", "clock", "declares a clock and never tells the time"),
            Self::ClockGoesBack => {
                seldom("clock-goes-back", "clock", "tells a time that goes back by an hour")
            }
            Self::AgesJump => seldom("ages-jump", "ages", "tells ages that jump"),
            Self::AgesRunFast => {
                seldom("ages-run-fast", "renewal", "tells ages that are ten times too great")
            }
            Self::FrozenTime => seldom("frozen-time", "tokens", "tells the same time for ever"),
            Self::RemovesAnyVersion => {
                seldom("removes-any-version", "removal", "removes whatever version is there")
            }
            Self::RacyRemoval => seldom("racy-removal", "removal", "looks first and removes later"),
            Self::RemovesWithoutAClock => {
                seldom("removes-without-a-clock", "removal", "offers removal and has no clock")
            }
            Self::StoppedClock => {
                seldom("stopped-clock", "expiry", "is used on machines whose clock stands still")
            }
        }
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.profile().name)
    }
}
