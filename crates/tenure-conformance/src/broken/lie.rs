use std::fmt;

/// Declares [`Lie`], with the facts about each variant.
macro_rules! lies {
    ($($(#[$doc:meta])* $lie:ident = $profile:expr,)+) => {
        /// One way in which a store breaks the contract while it declares every guarantee.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Lie {
            $($(#[$doc])* $lie,)+
        }

        impl Lie {
            /// All lies.
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
    /// A create of an existing entry overwrites it: the store accepts `If-None-Match: *` and ignores it. MinIO before
    /// 2024-05 compared the `*` literally.
    IgnoresCreate = always("create", "overwrites when it should create"),
    /// A replace of any version overwrites the entry: the store ignores `If-Match`, as reported of DigitalOcean Spaces.
    IgnoresReplace = always("replace", "replaces whatever version is there"),
    /// The store applies every write: Garage, the S3 interface of Google Cloud Storage, several emulators (`rclone
    /// serve s3`, `s3rver`).
    IgnoresAllConditions = always("create", "looks at no condition"),
    /// The store checks the condition and answers with a conflict, and overwrites the entry anyway, as a gateway does
    /// that checks after the write.
    WritesDespiteConflict = always("create", "says conflict and overwrites"),
    /// A replace of a missing key creates it: MinIO before 2025-09-06; a Kubernetes Lease without its uid.
    CreatesOnReplaceOfMissing = seldom("replace", "creates the entry that a replace does not find"),
    /// The store sometimes skips the condition: every published MinIO, when it cannot read the old entry from enough
    /// disks.
    SkipsConditionsSometimes = seldom("replace", "skips a condition now and then"),
    /// The store applies a replace of the version before the current one, as a cache in front of a store does.
    AcceptsPreviousVersion = seldom("replace", "takes the previous version for the current one"),
    /// First checks, then writes: SeaweedFS 3.97–4.17, RustFS, versitygw (up to 32 winners of 32), `s3s-fs`.
    RacyCheckThenAct = seldom("races", "looks first and writes later"),

    // ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// Reports every write as applied and writes nothing: a mock left in by mistake.
    SaysOkWithoutWriting = always("reads", "says ok and writes nothing"),
    /// Every third applied write is answered with a conflict: a library or a balancer sends the request twice
    /// (object_store, kube-rs and the AWS SDK do so by default).
    ConflictButWrites = seldom("create", "answers some applied writes with a conflict"),
    /// A lost answer is reported as a conflict, for the same reason.
    UnknownAsConflict = seldom("unknown", "reports a lost answer as a conflict"),
    /// A lost answer is reported as certainly no effect: object_store reports a connection that was cut after the
    /// request as one that was never made.
    UnknownAsRefused = seldom("unknown", "reports a lost answer as certainly no effect"),
    /// A lost request is reported as applied: a client that writes behind.
    UnknownAsApplied = seldom("unknown", "reports a lost request as applied"),
    /// A write whose future is dropped halfway leaves half of its value: `O_EXCL` followed by a write, as in every file
    /// store without a rename.
    TornWrites = seldom("unknown", "leaves half a value when a write is dropped"),
    /// A write whose future is dropped keeps the key locked permanently.
    DroppedWriteWedges = seldom("unknown", "keeps a key locked when a write is dropped"),

    // ── what is kept and shown ──────────────────────────────────────────────────────────────────────────────────
    /// The first reads after a write return the previous value: NATS' direct get, ZooKeeper without sync, Consul by
    /// default, Tigris' global buckets.
    StaleReads = seldom("reads", "shows the previous entry for a while"),
    /// A key that was never written has the empty value: a file store that creates the file in order to lock it.
    EmptyForMissing = seldom("reads", "shows the empty value where there is nothing"),
    /// Every seventh acknowledged write is lost: Redis at a failover.
    LosesWrites = seldom("keeps", "loses some acknowledged writes"),
    /// A restart deletes everything: Redis without a log.
    ForgetsAfterRestart = seldom("keeps", "has forgotten everything after a restart"),
    /// After a restart every entry has another version: a counter that is kept in memory.
    RestampsOnRestart = seldom("keeps", "gives every entry another version at a restart"),
    /// Entries that were not written for a while are deleted: Redis with an eviction policy, a life-cycle rule of a
    /// bucket. Leases are written often, so only a plain key without a ttl shows it.
    EvictsIdleEntries = seldom("entries", "deletes entries that were not written for a while"),
    /// Values are truncated at a kilobyte: a column that is too narrow, in MySQL without strict mode.
    TruncatesValues = seldom("values", "cuts values off at a kilobyte"),
    /// Bytes that are not UTF-8 are replaced: a text column.
    BendsBytes = seldom("values", "replaces bytes that are not UTF-8"),
    /// Values that are too large are accepted, and truncated to the maximum size.
    TakesTooLarge = seldom("values", "takes values that are too large"),

    // ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────
    /// `Key` and `key` are one key: macOS, Windows, MySQL's default collation.
    CaseInsensitiveKeys = seldom("keys", "does not tell Key from key"),
    /// `%41` and `A` are one key: a gateway that decodes twice.
    DecodesKeys = seldom("keys", "does not tell %41 from A"),
    /// If `a` exists, `a/b` cannot: a plain file system.
    KeysAreDirectories = seldom("keys", "cannot have a/b where a is"),

    // ── versions ────────────────────────────────────────────────────────────────────────────────────────────────
    /// The version is a hash of the bytes, and declared as unique: S3's ETag.
    ContentVersions = seldom("versions", "gives equal bytes an equal version"),
    /// Versions repeat: inode, size and a coarse time, as in object_store's local ETag.
    RepeatedVersions = seldom("versions", "gives out versions again"),
    /// Every write of a key has the same version: a weak ETag made of the name.
    SameVersionForEveryWrite = seldom("versions", "gives every write the same version"),
    /// The version of an entry is different on every read: ETags with an inode in them, from several servers behind one
    /// name.
    UnsteadyVersions = always("versions", "shows another version at every look"),
    /// Versions start at one again when the key is created again: ZooKeeper's data version, Consul's lock index.
    VersionsRestartAfterDelete = seldom("versions", "counts from one again after a deletion"),

    // ── list, watch, clock ──────────────────────────────────────────────────────────────────────────────────────
    /// Temporary names are listed: object_store's local `#1` files after a crash.
    ListsForeignNames = seldom("list", "lists its temporary names"),
    /// The newest key is not listed: object stores with eventual lists.
    ListMisses = seldom("list", "does not list the newest key"),
    /// Keys are listed twice: Redis' SCAN.
    ListRepeats = seldom("list", "lists keys twice"),
    /// `jobs` lists `jobs-old`: a prefix of characters, as in S3.
    ListsByLetters = seldom("list", "lists jobs-old under jobs"),
    /// Keys of Tenure's own directory are not listed: gateways on a file system hide names at the top that begin with a
    /// dot.
    HidesReservedNames = seldom("slots", "does not list the names that Tenure reserves"),
    /// Every list contains everything: a gateway that drops the query.
    ListsEverything = seldom("list", "lists everything under any prefix"),
    /// The stamp of an entry in a listing never changes: a cache in front of the listing.
    StampsStandStill = seldom("list", "lists the first stamp of an entry for ever"),
    /// Every listing has other stamps: the time of the listing, or an ETag of the server that answered.
    StampsRestless = seldom("list", "lists another stamp each time"),
    /// A watch is declared and never hints: Redis without keyspace notifications, inotify on a network file system.
    NeverHints = seldom("watch", "declares a watch and never hints"),
    /// A clock is declared, but answers have no time.
    NoTime = seldom("clock", "declares a clock and never tells the time"),
    /// Sometimes the time is an hour ago: a pool of servers, one of them with a wrong clock.
    ClockGoesBack = seldom("clock", "tells a time that goes back by an hour"),
    /// Ages come from a wall clock that is adjusted: PostgreSQL, Redis.
    AgesJump = seldom("ages", "tells ages that jump"),
    /// Ages are ten times too large: one unit of time used for another. Live holders look dead.
    AgesRunFast = seldom("renewal", "tells ages that are ten times too great"),
    /// The same time is repeated permanently: a proxy that caches the `Date` together with the answer.
    FrozenTime = seldom("clock", "tells the same time for ever"),
    /// A clock that counts writes is declared, and the time has whole seconds: a bucket whose tick was not declared.
    TickUndeclared = seldom("clock", "declares a clock that counts writes and shows whole seconds"),

    // ── administration ──────────────────────────────────────────────────────────────────────────────────────────
    /// A removal deletes any version: a `DELETE` without a condition, as in most object stores.
    RemovesAnyVersion = seldom("removal", "removes whatever version is there"),
    /// A removal first checks, and then deletes: read, compare, `unlink`, without a lock.
    RacyRemoval = seldom("removal", "looks first and removes later"),
    /// Removal is offered although no clock keeps tokens growing: litestream's leases, which start at one again.
    RemovesWithoutAClock = seldom("removal", "offers removal and has no clock"),

    // ── machines ────────────────────────────────────────────────────────────────────────────────────────────────
    /// A fault of the machines that use the store, not of the store: their clock stops. Examples are a virtual machine
    /// that is stopped and, while a laptop is suspended, every clock that does not count suspended time, such as
    /// `std::time::Instant`.
    StoppedClock = seldom("expiry", "is used on machines whose clock stands still"),
}

/// Facts about a lie.
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
    /// Behaviour of such a store, as the end of "a store that …".
    pub fn describe(self) -> &'static str {
        self.profile().describe
    }

    /// The clause of the suite that must catch it. Others may catch it too.
    pub fn caught_by(self) -> &'static str {
        self.profile().caught_by
    }

    /// True if the store lies at every opportunity, so that the check at connect already refuses it. That check makes
    /// only a few writes that must be refused. Other lies show only in a race, after a fault, or in writes that
    /// succeed.
    pub fn always(self) -> bool {
        self.profile().always
    }
}

/// The variant's name in lower case, with dashes between its words.
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
