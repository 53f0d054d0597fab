use std::fmt;

/// Declares [`Lie`], and beside each variant what is known of it.
macro_rules! lies {
    ($($(#[$doc:meta])* $lie:ident = $profile:expr,)+) => {
        /// One way in which a store breaks the contract while it declares the best.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Lie {
            $($(#[$doc])* $lie,)+
        }

        impl Lie {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$lie),+];

            fn profile(self) -> LieProfile {
                match self {
                    $(Self::$lie => $profile,)+
                }
            }
        }
    };
}

lies! {
    // ── conditions ──────────────────────────────────────────────────────────────────────────────────────────────
    /// A create over an entry overwrites it: `If-None-Match: *` is taken and not looked at. MinIO before 2024-05
    /// compared the `*` literally.
    IgnoresCreate = always("create", "overwrites when it should create"),
    /// A replace of any version overwrites what is there: `If-Match` is not looked at, as reported of DigitalOcean
    /// Spaces.
    IgnoresReplace = always("replace", "replaces whatever version is there"),
    /// Every write is applied: Garage, the S3 interface of Google Cloud Storage, several emulators (`rclone serve s3`,
    /// `s3rver`).
    IgnoresAllConditions = always("create", "looks at no condition"),
    /// The condition is looked at, the answer says conflict, and the entry is overwritten all the same, as by a gateway
    /// that checks after the fact.
    WritesDespiteConflict = always("create", "says conflict and overwrites"),
    /// A replace of a key that is not there creates it: MinIO before 2025-09-06; a Kubernetes Lease without its uid.
    CreatesOnReplaceOfMissing = seldom("replace", "creates the entry that a replace does not find"),
    /// Now and then the condition is skipped: every published MinIO, when the old entry cannot be read from enough
    /// disks.
    SkipsConditionsSometimes = seldom("replace", "skips a condition now and then"),
    /// A replace of the version before the current one is applied, as by a cache in front of the store.
    AcceptsPreviousVersion = seldom("replace", "takes the previous version for the current one"),
    /// First looks, then writes: SeaweedFS 3.97–4.17, RustFS, versitygw (up to 32 winners of 32), `s3s-fs`.
    RacyCheckThenAct = seldom("races", "looks first and writes later"),

    // ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// Says that everything was applied and writes nothing: a mock that was left in.
    SaysOkWithoutWriting = always("reads", "says ok and writes nothing"),
    /// Every third write that was applied is answered with a conflict: a library or a balancer sends the request twice
    /// (object_store, kube-rs and the AWS SDK do, unless told not to).
    ConflictButWrites = seldom("create", "answers some applied writes with a conflict"),
    /// A lost answer is reported as a conflict, for the same reason.
    UnknownAsConflict = seldom("unknown", "reports a lost answer as a conflict"),
    /// A lost answer is reported as certainly no effect: object_store takes a connection that was cut after the
    /// request for one that was never made.
    UnknownAsRefused = seldom("unknown", "reports a lost answer as certainly no effect"),
    /// A lost request is reported as applied: a client that writes behind.
    UnknownAsApplied = seldom("unknown", "reports a lost request as applied"),
    /// A write whose future is dropped half-way leaves half of its value: `O_EXCL` and then write, as in every file
    /// store without a rename.
    TornWrites = seldom("unknown", "leaves half a value when a write is dropped"),
    /// A write whose future is dropped keeps the key locked for ever.
    DroppedWriteWedges = seldom("unknown", "keeps a key locked when a write is dropped"),

    // ── what is kept and shown ──────────────────────────────────────────────────────────────────────────────────
    /// The first reads after a write show what was there before it: NATS' direct get, ZooKeeper without sync, Consul by
    /// default, Tigris' global buckets.
    StaleReads = seldom("reads", "shows the previous entry for a while"),
    /// A key that was never written holds the empty value: a file store that makes the file in order to lock it.
    EmptyForMissing = seldom("reads", "shows the empty value where there is nothing"),
    /// Every seventh acknowledged write is gone: Redis at a failover.
    LosesWrites = seldom("keeps", "loses some acknowledged writes"),
    /// Nothing is there after a restart: Redis without a log.
    ForgetsAfterRestart = seldom("keeps", "has forgotten everything after a restart"),
    /// After a restart every entry has another version: a counter that is kept in memory.
    RestampsOnRestart = seldom("keeps", "gives every entry another version at a restart"),
    /// Values are cut off at a kilobyte: a column that is too narrow, in MySQL without strict mode.
    TruncatesValues = seldom("values", "cuts values off at a kilobyte"),
    /// Bytes that are not UTF-8 are replaced: a column of text.
    BendsBytes = seldom("values", "replaces bytes that are not UTF-8"),
    /// Values that are too large are taken, and cut off at the largest size.
    TakesTooLarge = seldom("values", "takes values that are too large"),

    // ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────
    /// `Key` and `key` are one: macOS, Windows, MySQL's default collation.
    CaseInsensitiveKeys = seldom("keys", "does not tell Key from key"),
    /// `%41` and `A` are one: a gateway that decodes twice.
    DecodesKeys = seldom("keys", "does not tell %41 from A"),
    /// Where `a` is, `a/b` cannot be: a plain file system.
    KeysAreFolders = seldom("keys", "cannot have a/b where a is"),

    // ── versions ────────────────────────────────────────────────────────────────────────────────────────────────
    /// The version is a hash of the bytes, and declared as unique: S3's ETag.
    ContentVersions = seldom("versions", "gives equal bytes an equal version"),
    /// Versions come round again: inode, size and a coarse time, as object_store's local ETag.
    RepeatedVersions = seldom("versions", "gives out versions again"),
    /// Every write of a key has the same version: a weak ETag made of the name.
    SameVersionForEveryWrite = seldom("versions", "gives every write the same version"),
    /// The version of an entry is different whenever one looks: ETags with an inode in them, from several servers
    /// behind one name.
    UnsteadyVersions = always("versions", "shows another version at every look"),
    /// Versions count from one again when the key is created again: ZooKeeper's data version, Consul's lock index.
    VersionsRestartAfterDelete = seldom("versions", "counts from one again after a deletion"),

    // ── list, watch, clock ──────────────────────────────────────────────────────────────────────────────────────
    /// Temporary names are listed: object_store's local `#1` files after a crash.
    ListsForeignNames = seldom("list", "lists its temporary names"),
    /// The key that was created last is not listed: object stores with eventual lists.
    ListMisses = seldom("list", "does not list the newest key"),
    /// Keys are listed twice: Redis' SCAN.
    ListRepeats = seldom("list", "lists keys twice"),
    /// `jobs` lists `jobs-old`: a prefix that goes by letters, as S3's does.
    ListsByLetters = seldom("list", "lists jobs-old under jobs"),
    /// Every list is the list of everything: a gateway that drops the query.
    ListsEverything = seldom("list", "lists everything under any prefix"),
    /// A watch is declared and never hints: Redis without keyspace notifications, inotify on a network file system.
    NeverHints = seldom("watch", "declares a watch and never hints"),
    /// A clock is declared and answers have no time.
    NoTime = seldom("clock", "declares a clock and never tells the time"),
    /// Now and then the time is an hour ago: a pool of servers, one of them with a wrong clock.
    ClockGoesBack = seldom("clock", "tells a time that goes back by an hour"),
    /// Ages are counted on a wall clock, and that is set: PostgreSQL, Redis.
    AgesJump = seldom("ages", "tells ages that jump"),
    /// Ages are ten times too great: one unit of time taken for another. Healthy holders look dead.
    AgesRunFast = seldom("renewal", "tells ages that are ten times too great"),
    /// The time is told once and then repeated for ever: a proxy that caches the `Date` together with the answer.
    FrozenTime = seldom("tokens", "tells the same time for ever"),

    // ── administration ──────────────────────────────────────────────────────────────────────────────────────────
    /// A removal takes whatever is there: a `DELETE` that knows no condition, as in most object stores.
    RemovesAnyVersion = seldom("removal", "removes whatever version is there"),
    /// A removal first looks, and then removes: read, compare, `unlink`, without a lock.
    RacyRemoval = seldom("removal", "looks first and removes later"),
    /// Removal is offered where no clock keeps tokens growing: litestream's leases, which begin at one again.
    RemovesWithoutAClock = seldom("removal", "offers removal and has no clock"),

    // ── machines ────────────────────────────────────────────────────────────────────────────────────────────────
    /// Not the store but the machines that use it: their clock stands still. A virtual machine that is stopped, and,
    /// while a laptop is suspended, every clock that does not count that, such as `std::time::Instant`.
    StoppedClock = seldom("expiry", "is used on machines whose clock stands still"),
}

/// What is known of a lie.
struct LieProfile {
    caught_by: &'static str,
    describe: &'static str,
    always: bool,
}

fn always(caught_by: &'static str, describe: &'static str) -> LieProfile {
    LieProfile { caught_by, describe, always: true }
}

fn seldom(caught_by: &'static str, describe: &'static str) -> LieProfile {
    LieProfile { caught_by, describe, always: false }
}

impl Lie {
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
}

/// The variant's name in small letters, with dashes between its words.
impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        f.pad(&name)
    }
}
