use std::fmt;

use tenure_core::machine::{Content, Floor, Look, Rules, Seen, Standard};
use tenure_core::record::{Nonce, Record, State};
use tenure_core::{Drift, Token};
use tenure_store::{StoreClock, Version};

use crate::clock::Instant;

/// Proof, seen during work, that the store breaks its promises, which no operator can have caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// A write got a version that is not new. Another process that saw the version could replace the record.
    OldVersion(Version),
    /// Two terms with the same history have one token. No restoration can cause this: both replaced the same version.
    SameToken(Token),
}

impl Breach {
    /// The breach that a read shows, given the previous sighting, on a store whose clock allows the conclusion.
    pub(crate) fn shown(before: Option<&Seen>, look: &Look, clock: StoreClock) -> Option<Self> {
        let before = before?;
        let token = same_token(Some(before), look)?;
        let Content::Record(old, _) = &before.content else { return None };
        let Content::Record(new, _) = &look.content else { return None };
        (is_same_past(old, new) && is_past(token, before, clock)).then_some(Self::SameToken(token))
    }
}

/// The token that a read shows with another term than before.
pub(crate) fn same_token(before: Option<&Seen>, look: &Look) -> Option<Token> {
    let Content::Record(old, _) = &before?.content else { return None };
    let Content::Record(new, _) = &look.content else { return None };
    is_same_token(old, new).then_some(new.token)
}

/// True if the store's time was beyond the token at the previous sighting.
///
/// An operator may have restored the record since, from a backup before that grant. The next grant then has the same
/// history. It also has the same token if that comes from the record alone: on a store without a clock, and where
/// tokens are ahead of the clock. Otherwise its token begins from the store's time, which is greater by then.
fn is_past(token: Token, before: &Seen, clock: StoreClock) -> bool {
    matches!(Standard.floor(before, clock), Floor::At(time) if time.as_micros() > token.get())
}

/// True if two terms have one token. A planted record belongs to no term.
fn is_same_token(old: &Record, new: &Record) -> bool {
    let granted = old.term != Nonce::ZERO && new.term != Nonce::ZERO;
    granted && old.term != new.term && old.token == new.token
}

/// True if the terms before were the same. After a deletion there are none, and the next token may be equal if the clocks
/// of two front ends differ. Times are not compared: each holder writes its own.
fn is_same_past(old: &Record, new: &Record) -> bool {
    let tokens = |record: &Record| record.history.iter().map(|past| past.token).collect::<Vec<_>>();
    !old.history.is_empty() && tokens(old) == tokens(new)
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldVersion(version) => {
                write!(f, "it gave a write the version {:?}, which is not new", version.as_str())
            }
            Self::SameToken(token) => write!(f, "it let two holders have token {token}"),
        }
    }
}

/// True if a read that was sent at `sent` shows that an acknowledged write is missing: the same version with another record,
/// another record that is not later in the key's count of writes, or another term with the same token. An operator who
/// deletes or restores records causes the same, so it is no proof.
pub(crate) fn is_doubtful(before: Option<&Seen>, sent: Instant, look: &Look) -> bool {
    let Some(before) = before.filter(|before| before.returned <= sent) else { return false };
    let Content::Record(old, known) = &before.content else { return false };
    let Content::Record(new, version) = &look.content else { return false };
    let is_other = old.nonce != new.nonce;
    (is_other && (known == version || new.sequence <= old.sequence)) || is_same_token(old, new)
}

/// True if a read that was sent at `sent` shows the state that [`forget`](crate::Coordinator::forget) leaves behind: no
/// record, after one without a holder, on a store whose time is beyond every token seen.
///
/// An operator may remove a vacant record there, and the next token is still greater. A removal leaves no other
/// trace. A record that may be held, or an earlier one that is back, is different.
pub(crate) fn is_forgotten(
    before: Option<&Seen>,
    sent: Instant,
    look: &Look,
    highest: Token,
    clock: StoreClock,
) -> bool {
    let (Content::Absent, Some(before)) = (&look.content, before) else { return false };
    let is_free = match &before.content {
        Content::Record(record, _) => match (&record.state, record.ttl) {
            (State::Vacant, _) => true,
            (State::Held | State::Revoked(_) | State::Reserved(_), Some(ttl)) => {
                Standard.runs_out_at(before.returned, ttl, ttl, Drift::MAX) <= sent
            }
            _ => false,
        },
        Content::Absent | Content::Foreign { .. } => false,
    };
    let shown = Seen { content: Content::Absent, time: look.time, ..before.clone() };
    let is_beyond = match Standard.floor(&shown, clock) {
        Floor::At(time) => Standard.next_token(Token::ZERO, Token::ZERO, Some(time)) > Some(highest),
        Floor::None | Floor::ReadFirst => false,
    };
    is_free && is_beyond
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_store::StoreTime;

    use super::*;
    use crate::clock::WallTime;
    use tenure_core::record::{End, Past};

    /// The store's time, in 2026.
    const NOW: u64 = 1_790_000_000_000_000;

    fn record(term: u128, token: u64, nonce: u128) -> Record {
        let (token, nonce) = (Token::new(token).unwrap(), Nonce::from_bits(nonce));
        changed(Record::new(token, nonce, WallTime::default()), |it| it.term = Nonce::from_bits(term))
    }

    fn changed(mut record: Record, change: impl FnOnce(&mut Record)) -> Record {
        change(&mut record);
        record
    }

    fn content(record: Record, version: &str) -> Content {
        Content::Record(Arc::new(record), Version::new(version))
    }

    fn seen(content: Content) -> Seen {
        let now = Instant::from_nanos(1);
        let time = Some(StoreTime::from_micros(NOW));
        Seen { content, from: now, sent: now, returned: now, time, first_time: time, went_back: None }
    }

    fn look(content: Content) -> Look {
        Look { content, age: None, time: None }
    }

    /// A record with one earlier term of this token.
    fn after(token: u64, record: Record) -> Record {
        let time = WallTime::default();
        let token = Token::new(token).unwrap();
        let past = Past::new(token, "h", time, time, End::Released);
        changed(record, |it| it.history = Arc::new([past]))
    }

    #[test]
    fn one_token_of_two_terms_is_a_breach_and_the_same_term_or_a_planted_record_is_not() {
        let before = seen(content(after(3, record(1, 7, 1)), "v"));
        let shown = |term, token| {
            let look = look(content(after(3, record(term, token, 2)), "w"));
            Breach::shown(Some(&before), &look, StoreClock::Floors)
        };
        assert_eq!(shown(2, 7), Some(Breach::SameToken(Token::new(7).unwrap())));
        for (term, token) in [(1, 7), (2, 8), (2, 6), (0, 7)] {
            assert_eq!(shown(term, token), None, "term {term}, token {token}");
        }
        let clock = StoreClock::Floors;
        assert_eq!(Breach::shown(None, &look(content(record(2, 7, 2), "w")), clock), None);
        assert_eq!(Breach::shown(Some(&before), &look(Content::Absent), clock), None);
    }

    #[test]
    fn one_token_of_two_terms_is_no_breach_where_a_restored_record_gives_the_same_token() {
        let shown = |token, time: Option<u64>, clock| {
            let before = seen(content(after(3, record(1, token, 1)), "v"));
            let before = Seen { time: time.map(StoreTime::from_micros), ..before };
            let look = look(content(after(3, record(2, token, 2)), "w"));
            let doubtful = is_doubtful(Some(&before), Instant::from_nanos(1), &look);
            (Breach::shown(Some(&before), &look, clock).is_some(), doubtful)
        };
        assert_eq!(shown(NOW - 1, Some(NOW), StoreClock::Floors), (true, true));
        assert_eq!(shown(NOW - 1, Some(NOW), StoreClock::Nothing), (false, true), "no clock");
        assert_eq!(shown(NOW - 1, None, StoreClock::Floors), (false, true), "no time");
        assert_eq!(shown(NOW, Some(NOW), StoreClock::Floors), (false, true), "within its resolution");
        assert_eq!(shown(NOW + 1, Some(NOW), StoreClock::Ages), (false, true), "ahead of the clock");
        assert_eq!(shown(5, Some(9), StoreClock::Floors), (false, true), "a clock that was never set");
    }

    #[test]
    fn one_token_of_two_terms_with_another_history_is_doubtful() {
        let shown = |old: Record, new: Record| {
            let (before, look) =
                (seen(content(old, "v")), look(content(changed(new, |it| it.sequence = 9), "w")));
            let breach = Breach::shown(Some(&before), &look, StoreClock::Floors);
            (breach, is_doubtful(Some(&before), Instant::from_nanos(1), &look))
        };
        let (old, new) = (record(1, 7, 1), record(2, 7, 2));
        assert_eq!(shown(old.clone(), new.clone()), (None, true), "both are the first");
        assert_eq!(shown(after(3, old.clone()), new.clone()), (None, true));
        assert_eq!(shown(after(3, old), after(4, new)), (None, true));
    }

    #[test]
    fn another_record_with_the_same_version_or_no_later_in_the_count_of_writes_is_doubtful() {
        let before = seen(content(changed(record(1, 7, 1), |it| it.sequence = 5), "v"));
        let doubtful = |sequence, nonce, version, sent| {
            let new = changed(record(2, 8, nonce), |it| it.sequence = sequence);
            is_doubtful(Some(&before), Instant::from_nanos(sent), &look(content(new, version)))
        };
        assert!(doubtful(6, 2, "v", 1), "one version of two records");
        assert!(doubtful(5, 2, "w", 1), "two writes replaced the same one");
        assert!(doubtful(4, 2, "w", 1), "an earlier one is back");
        assert!(!doubtful(6, 2, "w", 1), "the next one");
        assert!(!doubtful(5, 1, "v", 1), "the same one");
        assert!(!doubtful(4, 2, "w", 0), "an answer that was overtaken");
    }
}
