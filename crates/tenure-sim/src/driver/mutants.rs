//! Mutants of the driver, which test its oracle. Each neglects one duty of the driver, or replaces one rule of the
//! protocol, and names the invariant that must catch it.

use std::time::Duration;

use tenure::simulation::Duty;
use tenure_core::machine::Rules;

use super::DriverFocus;
use crate::Invariant;

/// One deliberate defect of the driver.
#[derive(Clone, Copy, Debug)]
pub struct DriverMutant {
    /// Name on the command line.
    pub name: &'static str,
    /// The defect in words.
    pub replaces: &'static str,
    /// The invariant that must catch it.
    pub caught_by: Invariant,
    /// The focus of the hunt.
    pub focus: DriverFocus,
    /// The changed part.
    pub change: DriverChange,
}

/// The part that a mutant changes.
#[derive(Clone, Copy, Debug)]
pub enum DriverChange {
    /// One duty of the driver.
    Neglects(Duty),
    /// One rule of the machine.
    Rule(&'static dyn Rules),
}

impl DriverMutant {
    /// The mutant with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        DRIVER_MUTANTS.iter().find(|mutant| mutant.name == name)
    }
}

#[derive(Debug)]
struct AnySecret;

impl Rules for AnySecret {
    fn knows_secret(&self, _: Option<[u8; 32]>, _: Option<[u8; 32]>) -> bool {
        true
    }
}

#[derive(Debug)]
struct GivesUpWhenDenied;

impl Rules for GivesUpWhenDenied {
    fn pause_after_denied(&self, _: u32, _: u32) -> Option<Duration> {
        None
    }
}

#[derive(Debug)]
struct NeverReportsDenial;

impl Rules for NeverReportsDenial {
    fn pause_after_denied(&self, _: u32, _: u32) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }
}

const fn neglects(
    duty: Duty,
    name: &'static str,
    replaces: &'static str,
    caught_by: Invariant,
    focus: DriverFocus,
) -> DriverMutant {
    DriverMutant { name, replaces, caught_by, focus, change: DriverChange::Neglects(duty) }
}

/// All mutants of the driver.
pub const DRIVER_MUTANTS: &[DriverMutant] = &[
    neglects(
        Duty::TimeCalls,
        "call-without-timeout",
        "a call that hangs has no timeout",
        Invariant::L7,
        DriverFocus::None,
    ),
    neglects(
        Duty::TimeoutIsUnknown,
        "timeout-is-refused",
        "a call without an answer counts as refused",
        Invariant::S11,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::PanicIsUnknown,
        "panic-is-refused",
        "a call that panicked counts as refused",
        Invariant::S11,
        DriverFocus::Panics,
    ),
    neglects(
        Duty::CatchPanics,
        "panic-ends-keeper",
        "a panic of a call ends the keeper",
        Invariant::P1,
        DriverFocus::Panics,
    ),
    neglects(
        Duty::ReadClockForEachInput,
        "clock-read-once",
        "an input counts from the instant at which the timer last fired",
        Invariant::S2,
        DriverFocus::None,
    ),
    neglects(
        Duty::MoveTimers,
        "timer-stays",
        "a timer that is set does not move",
        Invariant::L4,
        DriverFocus::Whole,
    ),
    neglects(
        Duty::PollDespiteHints,
        "hints-alone",
        "a contender that listens to hints reads no more",
        Invariant::L7,
        DriverFocus::Hints,
    ),
    neglects(
        Duty::BoundPacing,
        "pacing-starves",
        "each contender delays the writes of all",
        Invariant::L4,
        DriverFocus::Paced,
    ),
    neglects(
        Duty::KeepUsedKeys,
        "used-key-evicted",
        "a key in use is forgotten",
        Invariant::P1,
        DriverFocus::Keys,
    ),
    neglects(
        Duty::WatchCancelledAcquires,
        "cancelled-acquire-forgotten",
        "a cancelled acquire is not watched",
        Invariant::S11,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::LatchAtRelease,
        "release-without-latch",
        "a release does not end the belief",
        Invariant::S6,
        DriverFocus::None,
    ),
    neglects(
        Duty::StopRenewingAtRelease,
        "released-and-renewed",
        "a released lease is renewed once more",
        Invariant::S6,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::LatchAtLoss,
        "loss-without-latch",
        "a loss does not end the belief",
        Invariant::S2,
        DriverFocus::None,
    ),
    neglects(
        Duty::LatchWhenKeeperEnds,
        "belief-without-keeper",
        "the end of the keeper does not end the belief",
        Invariant::S6,
        DriverFocus::None,
    ),
    neglects(
        Duty::CountWork,
        "work-uncounted",
        "work under a lease is not counted",
        Invariant::S6,
        DriverFocus::None,
    ),
    neglects(
        Duty::TellDrained,
        "drained-missed",
        "the keeper does not learn that the work has ended",
        Invariant::S11,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::WaitForWitness,
        "request-before-witness",
        "the first write does not wait for the witness",
        Invariant::W1,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::KeepEarlyAnswers,
        "early-answer-dropped",
        "an answer that arrives before the witness is dropped",
        Invariant::L7,
        DriverFocus::None,
    ),
    neglects(
        Duty::VerifyLocks,
        "lock-unverified",
        "a witness is named although its lock does not hold",
        Invariant::S2,
        DriverFocus::Witnesses,
    ),
    neglects(
        Duty::ListNonceFirst,
        "nonce-listed-late",
        "a nonce is listed after its request",
        Invariant::W1,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::LockWitnessUnderWork,
        "witness-unlocked-under-work",
        "the witness is unlocked while work goes on",
        Invariant::W1,
        DriverFocus::Witnesses,
    ),
    neglects(
        Duty::RemoveWitnessBeforeReply,
        "reply-before-witness-is-gone",
        "a release is answered before its witness is gone",
        Invariant::W1,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::EndRequestsAtShutdown,
        "shutdown-leaves-requests",
        "a shutdown does not end requests that wait",
        Invariant::S11,
        DriverFocus::Shutdowns,
    ),
    neglects(
        Duty::RefuseAfterShutdown,
        "grant-after-shutdown",
        "a request after a shutdown is granted",
        Invariant::S11,
        DriverFocus::Shutdowns,
    ),
    neglects(
        Duty::OutliveHandles,
        "keeper-ends-early",
        "the keeper ends before it has vacated everything",
        Invariant::S11,
        DriverFocus::Calm,
    ),
    neglects(
        Duty::RenewFirst,
        "renewals-in-line",
        "renewals wait behind polls",
        Invariant::L4,
        DriverFocus::Crowded,
    ),
    neglects(
        Duty::LetPollsThrough,
        "polls-starve",
        "polls wait for all renewals",
        Invariant::L7,
        DriverFocus::Crowded,
    ),
    neglects(
        Duty::GivePlacesBack,
        "place-kept",
        "a place is not given back",
        Invariant::L7,
        DriverFocus::Crowded,
    ),
    neglects(
        Duty::WithdrawCalls,
        "waiting-call-sent",
        "a call that waits is sent although its lease is released",
        Invariant::S6,
        DriverFocus::Crowded,
    ),
    neglects(
        Duty::PaceInTrouble,
        "burst-after-outage",
        "a failing store gets calls without a limit",
        Invariant::L5,
        DriverFocus::Outage,
    ),
    DriverMutant {
        name: "denial-ends-patience",
        replaces: "a patient contender gives up at the first denied answer",
        caught_by: Invariant::L4,
        focus: DriverFocus::Credentials,
        change: DriverChange::Rule(&GivesUpWhenDenied),
    },
    DriverMutant {
        name: "denial-never-reported",
        replaces: "a patient contender never reports a denial",
        caught_by: Invariant::L7,
        focus: DriverFocus::Credentials,
        change: DriverChange::Rule(&NeverReportsDenial),
    },
    neglects(
        Duty::KeyTimeoutIsUnknown,
        "key-write-forgotten",
        "a change of a plain key without an answer counts as refused",
        Invariant::S5,
        DriverFocus::Primitives,
    ),
    neglects(
        Duty::CompareGroupSize,
        "any-group-size",
        "a contender that expects another number of slots is granted one",
        Invariant::S4,
        DriverFocus::Primitives,
    ),
    neglects(
        Duty::ReleaseCancelledSlot,
        "cancelled-slot-kept",
        "a slot that was granted to a cancelled request is kept",
        Invariant::S11,
        DriverFocus::Primitives,
    ),
    neglects(
        Duty::HearSlotHints,
        "slot-hints-ignored",
        "a contender for a slot does not listen to hints",
        Invariant::L3,
        DriverFocus::Primitives,
    ),
    neglects(
        Duty::ReleaseDeniedSet,
        "denied-set-kept",
        "a set that is denied keeps the leases that were granted",
        Invariant::S11,
        DriverFocus::Primitives,
    ),
    neglects(
        Duty::ReleaseRestOfSet,
        "rest-of-set-kept",
        "a set that loses one lease keeps the others",
        Invariant::S6,
        DriverFocus::Primitives,
    ),
    neglects(
        Duty::CheckDomainOfPage,
        "sighting-of-another-boot",
        "a page of the logbook that was written on another clock counts",
        Invariant::S2,
        DriverFocus::Pages,
    ),
    DriverMutant {
        name: "any-secret",
        replaces: "the secret of a handle is not compared",
        caught_by: Invariant::K2,
        focus: DriverFocus::Calm,
        change: DriverChange::Rule(&AnySecret),
    },
];
