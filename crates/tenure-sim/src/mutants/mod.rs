//! Mutants, which test the oracle. Each mutant replaces one rule of the protocol, or breaks one thing in the world, and
//! names the invariant that must catch it.
//!
//! Mutants are implementations of the machine's [`Rules`] in this crate, so the product contains no mutant code, and
//! the compiler keeps the mutants up to date.

mod answers;
mod elections;
mod entries;
mod fences;
mod groups;
mod jobs;
mod quarantines;
mod several;
mod stubborn;
mod terms;
mod times;
mod tokens;
mod witnesses;

use tenure_core::election::ElectionRules;
use tenure_core::keys::KeyRules;
use tenure_core::machine::Rules;
use tenure_core::set::SetRules;
use tenure_core::slots::SlotRules;
use tenure_store::QuarantineRules;

use crate::seed::{Bug, Seed};
use crate::{Focus, Invariant};

/// One deliberate defect.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Name on the command line.
    pub name: &'static str,
    /// The defect in words.
    pub replaces: &'static str,
    /// The invariant that must catch it.
    pub caught_by: Invariant,
    /// The focus of the hunt.
    pub focus: Focus,
    /// The changed part.
    pub change: Change,
}

/// The part that a mutant changes.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// One rule of the machine.
    Rule(&'static dyn Rules),
    /// One rule of the election.
    Election(&'static dyn ElectionRules),
    /// One rule of several leases at once.
    Sets(&'static dyn SetRules),
    /// One rule of plain keys.
    Keys(&'static dyn KeyRules),
    /// One rule of groups of slots.
    Slots(&'static dyn SlotRules),
    /// One rule of the quarantine after a restart of the server.
    Quarantine(&'static dyn QuarantineRules),
    /// A part of the world.
    World(WorldBug),
}

/// A defect of the world.
#[derive(Clone, Copy, Debug)]
pub struct WorldBug(Bug);

impl Mutant {
    /// The mutant with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MUTANTS.iter().find(|mutant| mutant.name == name)
    }
}

impl Change {
    pub(crate) fn apply(self, seed: &mut Seed) {
        match self {
            Self::Rule(rules) => seed.rules = rules,
            Self::Election(rules) => seed.election = rules,
            Self::Sets(rules) => seed.sets = rules,
            Self::Keys(rules) => seed.keys = rules,
            Self::Slots(rules) => seed.slots = rules,
            Self::Quarantine(rules) => seed.quarantine = rules,
            Self::World(WorldBug(bug)) => seed.bug = bug,
        }
    }
}

const fn rule(
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    focus: Focus,
    rules: &'static dyn Rules,
) -> Mutant {
    Mutant { name, replaces, caught_by, focus, change: Change::Rule(rules) }
}

const fn election(
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    focus: Focus,
    rules: &'static dyn ElectionRules,
) -> Mutant {
    Mutant { name, replaces, caught_by, focus, change: Change::Election(rules) }
}

const fn sets(
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    rules: &'static dyn SetRules,
) -> Mutant {
    Mutant { name, replaces, caught_by, focus: Focus::Sets, change: Change::Sets(rules) }
}

const fn keys(
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    rules: &'static dyn KeyRules,
) -> Mutant {
    Mutant { name, replaces, caught_by, focus: Focus::Keys, change: Change::Keys(rules) }
}

const fn slots(
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    rules: &'static dyn SlotRules,
) -> Mutant {
    Mutant { name, replaces, caught_by, focus: Focus::Slots, change: Change::Slots(rules) }
}

const fn quarantine(
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    rules: &'static dyn QuarantineRules,
) -> Mutant {
    Mutant { name, replaces, caught_by, focus: Focus::Restarts, change: Change::Quarantine(rules) }
}

const fn world(
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    focus: Focus,
    bug: Bug,
) -> Mutant {
    Mutant { name, replaces, caught_by, focus, change: Change::World(WorldBug(bug)) }
}

/// All mutants.
#[rustfmt::skip]
pub static MUTANTS: &[Mutant] = &[
    // ── time ──
    rule("deadline-from-answer", "a deadline counts from the answer, not from before the request",
        Invariant::S2, Focus::SlowReads, &times::DeadlineFromAnswer),
    rule("wait-from-request", "a contender's wait counts from its request, not from the return of the read",
        Invariant::S2, Focus::SlowReads, &times::WaitFromRequest),
    rule("holder-without-drift", "a holder counts the full ttl, without the drift",
        Invariant::S2, Focus::Clocks, &times::HolderWithoutDrift),
    rule("drift-of-the-wrong-sign", "a holder adds the drift to the ttl instead of subtracting it",
        Invariant::S2, Focus::Clocks, &times::DriftOfTheWrongSign),
    rule("contender-without-drift", "a contender waits for the ttl, without the drift",
        Invariant::S2, Focus::Clocks, &times::ContenderWithoutDrift),
    rule("own-ttl", "a contender waits for its own ttl, not that of the record",
        Invariant::S2, Focus::None, &times::OwnTtl),
    rule("wall-clock-ages", "the age of a version is measured by wall clocks",
        Invariant::S2, Focus::None, &times::WallClockAges),
    rule("version-without-nonce", "an observed version is identified by its stamp alone",
        Invariant::S2, Focus::Recounting, &times::VersionWithoutNonce),
    rule("renewal-after-deadline", "a renewal is accepted after the deadline",
        Invariant::S6, Focus::None, &times::RenewalAfterDeadline),
    rule("waits-too-long", "a contender waits for ten times the ttl",
        Invariant::L1, Focus::Stealers, &times::WaitsTooLong),
    rule("polls-too-often", "a contender reads thirty times per ttl",
        Invariant::L5, Focus::None, &times::PollsTooOften),
    rule("renewal-pause-does-not-grow", "a holder calls a failing store every half timeout",
        Invariant::L5, Focus::Outages, &times::PauseDoesNotGrow),
    rule("last-renewal-too-late", "a failed renewal is tried again when no answer can be in time",
        Invariant::L4, Focus::Outages, &times::LastRenewalTooLate),
    // ── answers ──
    rule("unknown-as-success", "a write without an answer counts as done",
        Invariant::S5, Focus::None, &answers::UnknownAsSuccess),
    rule("unknown-as-loss", "a renewal without an answer ends the term",
        Invariant::L4, Focus::Calm, &answers::UnknownAsLoss),
    rule("conflict-believed", "a conflict counts as a loss without reading back",
        Invariant::S5, Focus::Unknowns, &answers::ConflictBelieved),
    rule("conflict-settles", "a write that was answered with a conflict is no longer outstanding",
        Invariant::S5, Focus::Unknowns, &answers::ConflictSettles),
    rule("throttled-settles", "a throttled write is no longer outstanding",
        Invariant::S5, Focus::Unknowns, &answers::ThrottledSettles),
    rule("attempts-forgotten", "a new attempt forgets the earlier ones",
        Invariant::S5, Focus::Unknowns, &answers::AttemptsForgotten),
    rule("name-as-proof", "a record with the lease's own holder name is its own",
        Invariant::S2, Focus::Twins, &answers::NameAsProof),
    rule("no-nonce", "a write reuses the nonce of the previous one",
        Invariant::S2, Focus::None, &answers::NoNonce),
    // ── tokens ──
    rule("token-not-raised", "a grant keeps the token of the previous one",
        Invariant::S1, Focus::Clockless, &tokens::NotRaised),
    rule("release-forgets-token", "a release leaves no token behind, as if it deleted the record",
        Invariant::S1, Focus::Clockless, &tokens::ReleaseForgets),
    rule("grant-on-missing", "a missing record is granted without planting it",
        Invariant::S1, Focus::Deletions, &tokens::GrantOnMissing),
    rule("floor-before-version", "the floor comes from an answer that is older than the version",
        Invariant::S1, Focus::Deletions, &tokens::FloorBeforeVersion),
    rule("first-grant-at-once", "a planted record is granted in the tick of the store's clock in which it was planted",
        Invariant::S1, Focus::Ticks, &tokens::FirstGrantAtOnce),
    rule("floor-from-cache", "the floor comes from an answer of any age",
        Invariant::S1, Focus::Restores, &tokens::FloorFromCache),
    rule("freshness-from-return", "the age of an answer counts from its arrival, not from its request",
        Invariant::S1, Focus::Restores, &tokens::FreshnessFromReturn),
    rule("any-time-is-a-floor", "any store time is a floor after a token went back, even 1970",
        Invariant::S1, Focus::Restores, &tokens::AnyTime),
    rule("grants-after-going-back", "a grant is made although a token went back",
        Invariant::S1, Focus::GoingBack, &tokens::GrantsAfterGoingBack),
    // ── terms ──
    rule("ttl-changes", "a renewal may shorten the ttl",
        Invariant::S2, Focus::None, &terms::TtlChanges),
    rule("late-vacate", "every record with the lease's own holder name is vacated",
        Invariant::S2, Focus::Twins, &terms::LateVacate),
    rule("vacate-under-work", "a lease is vacated while work runs under it",
        Invariant::S6, Focus::SlowWork, &terms::VacateUnderWork),
    rule("resume-believes-first", "a resumed handle believes before its renewal",
        Invariant::S2, Focus::Witnesses, &terms::ResumeBelievesFirst),
    rule("handle-good-twice", "a handle stays valid for its term after it was used",
        Invariant::S6, Focus::Scripts, &terms::HandleGoodTwice),
    rule("resume-revives", "a renewal by handle is believed after the deadline of the handle",
        Invariant::S6, Focus::Scripts, &terms::ResumeRevives),
    rule("doubtful-resume-vacated", "a renewal by handle that is given up with an unknown outcome is vacated",
        Invariant::S2, Focus::Scripts, &terms::DoubtfulResumeVacated),
    rule("vacates-its-term", "every record of the own term is vacated, even if another process renewed it",
        Invariant::S2, Focus::Scripts, &terms::VacatesItsTerm),
    rule("second-steal-restarts", "a second stealer revokes again",
        Invariant::L1, Focus::Stealers, &terms::SecondStealRestarts),
    rule("steal-without-waiting", "a stealer does not wait after revoking",
        Invariant::S2, Focus::Stealers, &terms::StealWithoutWaiting),
    // ── witnesses ──
    rule("witness-without-nonce", "an unlocked witness is proof without listing the nonce",
        Invariant::S2, Focus::Witnesses, &witnesses::WithoutNonce),
    rule("witness-copied", "a copy of a witness is proof",
        Invariant::S2, Focus::Witnesses, &witnesses::Copied),
    rule("witness-empty", "an unlocked witness that lists nothing is proof, too",
        Invariant::S2, Focus::Witnesses, &witnesses::Empty),
    rule("witness-missing", "a missing witness is proof",
        Invariant::S2, Focus::Witnesses, &witnesses::Missing),
    rule("witness-locked", "a witness is proof even if it is locked",
        Invariant::S2, Focus::Witnesses, &witnesses::Locked),
    rule("witness-guards-alone", "a witness whose guards are dead is proof although its tree has it locked",
        Invariant::S2, Focus::Witnesses, &stubborn::GuardsAlone),
    // ── work that cannot be stopped ──
    rule("lets-unstoppable-lapse", "the record of work that cannot be stopped is left to run out",
        Invariant::S2, Focus::Stubborn, &stubborn::LetsLapse),
    rule("revokes-unstoppable", "a term is revoked although its work cannot be stopped",
        Invariant::S6, Focus::Stubborn, &stubborn::Revokes),
    rule("another-terms-field", "work counts as unstoppable even if another term said so",
        Invariant::S5, Focus::Stubborn, &stubborn::AnotherTerm),
    rule("takes-under-a-tree", "a lease that has run out is taken over while its tree is alive",
        Invariant::S6, Focus::Witnesses, &stubborn::UnderATree),
    // ── showing and overwriting ──
    rule("overwrites-foreign", "a foreign record is overwritten",
        Invariant::S9, Focus::Foreign, &fences::OverwritesForeign),
    rule("observer-shows-older", "an observer shows every token that it reads",
        Invariant::S8, Focus::None, &fences::ObserverShowsOlder),
    // ── elections ──
    election("elected-by-name", "a campaigner leads when it sees its own name in the record",
        Invariant::S2, Focus::ElectedTwins, &elections::ElectedByName),
    election("releaser-first", "a node that has just released campaigns again at once",
        Invariant::L6, Focus::ElectedInTurn, &elections::ReleaserFirst),
    election("shows-older-leader", "an observer of leaders shows every leader that it reads",
        Invariant::S8, Focus::Primitives, &elections::ShowsOlderLeader),
    // ── several leases at once ──
    sets("set-with-one-lost", "a set is believed while one of its leases is held",
        Invariant::A1, &several::OneIsEnough),
    sets("set-outlives-first-loss", "the loss of a lease does not end the set",
        Invariant::S6, &several::OutlivesFirstLoss),
    sets("set-in-callers-order", "the leases of a set are acquired in the order of the caller",
        Invariant::L1, &several::CallersOrder),
    sets("set-keeps-part", "a set that was denied keeps the leases that were granted",
        Invariant::S11, &several::KeepsPart),
    // ── once per period ──
    rule("always-due", "a job is granted although its period is not over",
        Invariant::J1, Focus::Jobs, &jobs::AlwaysDue),
    rule("due-by-the-wall-clock", "a job is due by the clock of the contender",
        Invariant::J1, Focus::Jobs, &jobs::DueByTheWallClock),
    rule("failures-count", "every release records a success",
        Invariant::J1, Focus::Jobs, &jobs::FailuresCount),
    // ── plain keys ──
    keys("revision-reused", "a change keeps the revision of the entry before it",
        Invariant::S1, &entries::RevisionReused),
    keys("release-forgets-revision", "a release leaves no revision behind",
        Invariant::K1, &entries::ReleaseForgetsRevision),
    keys("any-revision-updates", "a change replaces an entry of any revision",
        Invariant::K1, &entries::AnyRevision),
    keys("run-out-entry-updated", "an entry that is known to have run out is changed by its old revision",
        Invariant::K1, &entries::RunOutUpdated),
    keys("created-over-entry", "an entry is created over one that has not run out",
        Invariant::K1, &entries::CreatedOver),
    keys("runs-out-early", "an entry has run out after half its ttl",
        Invariant::K1, &entries::RunsOutEarly),
    keys("renewed-by-another", "any participant renews an entry",
        Invariant::K2, &entries::RenewedByAnother),
    keys("released-by-another", "any participant releases an entry",
        Invariant::K2, &entries::ReleasedByAnother),
    keys("owner-by-name", "the owner of an entry is known by its name",
        Invariant::K2, &entries::OwnerByName),
    keys("entry-renewed-late", "an owner renews an entry that may have run out for another participant",
        Invariant::K1, &entries::RenewedLate),
    keys("renewal-grows-revision", "a renewal gives the entry another revision",
        Invariant::K1, &entries::RenewalGrows),
    keys("lost-answer-without-doubt", "a change whose answer was lost is never in doubt",
        Invariant::S5, &entries::LostAnswerWithoutDoubt),
    keys("entry-unknown-as-done", "a change without an answer counts as done",
        Invariant::S5, &entries::UnknownAsDone),
    keys("entry-unknown-as-conflict", "a change without an answer counts as a conflict",
        Invariant::S5, &entries::UnknownAsConflict),
    keys("overtaken-as-conflict", "a change that was overtaken after a lost answer counts as a conflict",
        Invariant::S5, &entries::OvertakenAsConflict),
    // ── groups of slots ──
    slots("slot-off-by-one", "a group has one slot more than its size",
        Invariant::S4, &groups::OffByOne),
    slots("slot-size-unchecked", "a contender uses a group of another size",
        Invariant::S4, &groups::SizeUnchecked),
    slots("slot-size-before-grant", "a slot is believed by a size that was read before its grant",
        Invariant::S4, &groups::SizeBeforeGrant),
    slots("resize-evicts", "a shrink evicts the holders of the highest slots",
        Invariant::S4, &groups::ResizeEvicts),
    slots("slot-polls-too-often", "a waiting contender reads a full group forty times per ttl",
        Invariant::L5, &groups::SlotPollsTooOften),
    slots("slot-unseen", "a waiting contender reads only the first slot",
        Invariant::L3, &groups::OnlyTheFirst),
    slots("slot-free-by-stamp", "a slot whose stamp changed in a listing counts as free without a read",
        Invariant::L5, &groups::FreeByStamp),
    slots("slot-stamps-unread", "a slot whose stamp changed or stood still in the listings is not read",
        Invariant::L3, &groups::StampsUnread),
    // ── a server that may forget ──
    quarantine("no-quarantine", "a grant is sent at once after a restart of the server",
        Invariant::S2, &quarantines::NoQuarantine),
    quarantine("resumes-in-quarantine", "a handle is resumed at once after a restart of the server",
        Invariant::S2, &quarantines::ResumesAtOnce),
    quarantine("quarantine-by-uptime", "the quarantine counts from the time at which the server says it started",
        Invariant::S2, &quarantines::ByUptime),
    quarantine("quarantine-without-drift", "the quarantine lasts for the longest ttl, without the drift",
        Invariant::S2, &quarantines::WithoutDrift),
    quarantine("cleared-by-another-run", "the mark of another run ends the quarantine",
        Invariant::S2, &quarantines::ClearedByAnotherRun),
    quarantine("seen-by-another-clock", "the quarantine counts from a sighting on another clock",
        Invariant::S2, &quarantines::ByAnotherClock),
    quarantine("version-of-another-run", "a version that was read before a restart conditions a write after it",
        Invariant::S1, &quarantines::VersionOfAnotherRun),
    // ── the world ──
    world("store-ignores-conditions", "the store applies every write",
        Invariant::S2, Focus::None, Bug::StoreIgnoresConditions),
    world("no-fence", "the resource accepts every token",
        Invariant::S3, Focus::None, Bug::NoFence),
    world("belief-revived", "the keeper extends a belief that was latched as lost",
        Invariant::S6, Focus::SlowWork, Bug::RevivesBelief),
    world("connects-unchecked", "a store is used without the check at connect",
        Invariant::S7, Focus::Liars, Bug::ConnectsUnchecked),
    world("never-rests", "a contender tries again at once after its release",
        Invariant::L6, Focus::Fairness, Bug::NeverRests),
];
