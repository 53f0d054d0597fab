use std::fmt;

/// A property of every history. The names are those of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// Tokens strictly increase by grant; one token, one grant.
    S1,
    /// Within the drift bound, no two holders believe at the same true instant.
    S2,
    /// After the fenced resource has accepted a write under a token, it accepts none under a smaller token.
    S3,
    /// At most as many slots of a group are believed as it has, and a shrink evicts no holder.
    S4,
    /// An unknown outcome is never guessed.
    S5,
    /// A lost lease stays lost, and no lease is vacated while work runs under it.
    S6,
    /// A store that lies grants nothing.
    S7,
    /// Observers never see a token go back, and after quiet they see the true one.
    S8,
    /// A record that is not understood is never overwritten.
    S9,
    /// Same seed, same trace.
    S10,
    /// An unused grant is vacated: a set that is not granted leaves nothing held.
    S11,
    /// A change replaces exactly the entry that it expects, and answers show what was there during the operation.
    K1,
    /// Only the owner of an entry renews or releases it.
    K2,
    /// A set of leases is believed only while every lease of it is held.
    A1,
    /// A job is not granted again before the period after its last success, and only a reported success counts.
    J1,
    /// After healing, the key is held again within two ttl and one call timeout.
    L1,
    /// A freed slot is taken in time by a contender that waits.
    L3,
    /// Below the fault threshold no lease is lost.
    L4,
    /// A waiting contender makes at most five store calls per ttl, and a holder few calls in a failing store.
    L5,
    /// Every contender that keeps trying wins within twenty terms per contender.
    L6,
    /// Every future that has a bound resolves within it.
    L7,
    /// The witness of a lease is locked while work can run under it, lists the nonces of its record, and is gone before
    /// its release is answered.
    W1,
    /// A panic of foreign code costs one call: no keeper ends by it.
    P1,
}

impl Invariant {
    /// The invariant in words.
    pub fn says(self) -> &'static str {
        match self {
            Self::S1 => "tokens strictly increase by grant",
            Self::S2 => "no two holders believe at the same instant",
            Self::S3 => "the fence never admits a smaller token",
            Self::S4 => "a group has no more holders than slots",
            Self::S5 => "an unknown outcome is never guessed",
            Self::S6 => "a lost lease stays lost",
            Self::S7 => "a store that lies grants nothing",
            Self::S8 => "observers never see a token go back",
            Self::S9 => "a foreign record is never overwritten",
            Self::S10 => "same seed, same trace",
            Self::S11 => "a grant that no holder uses is vacated",
            Self::K1 => "a change replaces exactly the entry that it expects",
            Self::K2 => "only the owner renews or releases an entry",
            Self::A1 => "a set is believed only while all of it is held",
            Self::J1 => "a job that succeeded is not granted again within its period",
            Self::L1 => "after healing, the key is held again in time",
            Self::L3 => "a freed slot is taken in time",
            Self::L4 => "no lease is lost below the fault threshold",
            Self::L5 => "contenders and holders make few store calls per ttl",
            Self::L6 => "every contender that keeps trying wins",
            Self::L7 => "every future that has a bound resolves within it",
            Self::W1 => "a witness proves that its holder lives, and is gone with its lease",
            Self::P1 => "a panic of foreign code costs one call",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::S4 => "S4",
            Self::S5 => "S5",
            Self::S6 => "S6",
            Self::S7 => "S7",
            Self::S8 => "S8",
            Self::S9 => "S9",
            Self::S10 => "S10",
            Self::S11 => "S11",
            Self::K1 => "K1",
            Self::K2 => "K2",
            Self::A1 => "A1",
            Self::J1 => "J1",
            Self::L1 => "L1",
            Self::L3 => "L3",
            Self::L4 => "L4",
            Self::L5 => "L5",
            Self::L6 => "L6",
            Self::L7 => "L7",
            Self::W1 => "W1",
            Self::P1 => "P1",
        })
    }
}
