use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tenure_store::Token;

use super::{Counts, Shown};
use crate::FenceError;

/// What the writers did, in the order of one counter: the judge of S3.
#[derive(Debug, Default)]
pub struct History {
    steps: AtomicU64,
    calls: Mutex<Vec<Call>>,
}

/// One write or seal.
#[derive(Clone, Copy, Debug)]
struct Call {
    token: Token,
    /// The number that it wrote; `None` for a seal.
    number: Option<u64>,
    /// Steps of the counter before the call was sent and after its answer arrived.
    began: u64,
    ended: u64,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Admitted,
    /// Refused as stale; by this greatest token.
    Stale(Token),
    Unknown,
    /// Not written, for another reason.
    Failed,
}

impl History {
    /// A call is sent now. Pass the result to [`ends`](Self::ends).
    pub fn begins(&self) -> u64 {
        self.steps.fetch_add(1, Ordering::SeqCst)
    }

    /// The answer of a call has arrived; `number` is `None` for a seal.
    pub fn ends(&self, began: u64, token: Token, number: Option<u64>, answer: &Result<(), FenceError>) {
        let ended = self.steps.fetch_add(1, Ordering::SeqCst);
        let outcome = match answer {
            Ok(()) => Outcome::Admitted,
            Err(FenceError::Stale { highest, .. }) => Outcome::Stale(*highest),
            Err(FenceError::Unknown { .. }) => Outcome::Unknown,
            Err(_) => Outcome::Failed,
        };
        let call = Call { token, number, began, ended, outcome };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// Judges all calls, and what the resource shows afterwards: all admitted writes in their order, or the latest one.
    pub fn judge(&self, shown: &[Shown], keeps_all: bool) -> Result<Counts, String> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        calls.sort_by_key(|call| call.began);
        let mut counts = Counts::default();
        for call in &calls {
            match call.outcome {
                Outcome::Admitted => counts.admitted += 1,
                Outcome::Stale(_) => counts.refused += 1,
                Outcome::Unknown => counts.unknown += 1,
                Outcome::Failed => {}
            }
        }
        self.no_smaller_token_follows(&calls)?;
        self.refusals_have_a_reason(&calls)?;
        self.shown_writes_are_in_order(&calls, shown, keeps_all)?;
        Ok(counts)
    }

    /// S3: a call that began after an admitted one had ended has no smaller token, if it was admitted.
    fn no_smaller_token_follows(&self, calls: &[Call]) -> Result<(), String> {
        let mut ended: Vec<_> = calls.iter().filter(|call| call.outcome == Outcome::Admitted).collect();
        let mut began = ended.clone();
        ended.sort_by_key(|call| call.ended);
        began.sort_by_key(|call| call.began);
        let (mut next, mut highest) = (0, None::<&Call>);
        for call in began {
            while next < ended.len() && ended[next].ended < call.began {
                highest =
                    Some(highest.map_or(ended[next], |it| {
                        if it.token >= ended[next].token { it } else { ended[next] }
                    }));
                next += 1;
            }
            if let Some(newer) = highest.filter(|newer| newer.token > call.token) {
                return Err(format!(
                    "token {} was admitted (write {:?}) after token {} had been admitted (write {:?})",
                    call.token, call.number, newer.token, newer.number
                ));
            }
        }
        Ok(())
    }

    /// A refusal names a greater token, which some call has offered by then.
    fn refusals_have_a_reason(&self, calls: &[Call]) -> Result<(), String> {
        for call in calls {
            let Outcome::Stale(highest) = call.outcome else { continue };
            let offered = calls.iter().any(|other| {
                other.token == highest && other.began < call.ended && other.outcome != Outcome::Failed
            });
            if highest <= call.token || !offered {
                return Err(format!(
                    "token {} was refused because of token {highest}, which is not greater or was never offered",
                    call.token
                ));
            }
        }
        Ok(())
    }

    /// The resource shows only writes that may have been made, with their tokens, in an order that never goes back; and no
    /// admitted one is missing if it keeps all.
    fn shown_writes_are_in_order(
        &self,
        calls: &[Call],
        shown: &[Shown],
        keeps_all: bool,
    ) -> Result<(), String> {
        let of_number: HashMap<u64, &Call> =
            calls.iter().filter_map(|call| Some((call.number?, call))).collect();
        let mut highest = None;
        for write in shown {
            let call = of_number
                .get(&write.number)
                .ok_or_else(|| format!("the resource shows write {}, which was never sent", write.number))?;
            if !matches!(call.outcome, Outcome::Admitted | Outcome::Unknown) {
                return Err(format!(
                    "the resource shows write {}, which was answered as not made",
                    write.number
                ));
            }
            if write.token.is_some_and(|token| token != call.token) {
                return Err(format!("the resource shows write {} under another token", write.number));
            }
            if highest.is_some_and(|highest| call.token < highest) {
                return Err(format!("the resource shows token {} after a greater one", call.token));
            }
            highest = Some(call.token);
        }
        let admitted =
            || calls.iter().filter(|call| call.outcome == Outcome::Admitted && call.number.is_some());
        if keeps_all {
            let missing =
                admitted().find(|call| !shown.iter().any(|write| Some(write.number) == call.number));
            if let Some(call) = missing {
                return Err(format!("the admitted write {:?} is missing", call.number));
            }
        } else {
            let newest = admitted().map(|call| call.token).max();
            if newest.is_some_and(|newest| highest.is_none_or(|highest| highest < newest)) {
                return Err(format!("the resource shows {highest:?} although {newest:?} was admitted"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FencingToken;

    fn token(number: u64) -> Token {
        Token::new(number).unwrap()
    }

    fn history(calls: &[(u64, u64, bool)]) -> History {
        let history = History::default();
        for (number, offered, admitted) in calls {
            let began = history.begins();
            let offered: FencingToken = format!("x={offered}").parse().unwrap();
            let answer = if *admitted { Ok(()) } else { Err(FenceError::stale("r", &offered, token(9))) };
            history.ends(began, offered.token(), Some(*number), &answer);
        }
        history
    }

    fn shown(number: u64) -> Shown {
        Shown { token: None, number }
    }

    #[test]
    fn an_admitted_smaller_token_is_found() {
        let good = history(&[(1, 5, true), (2, 9, true), (3, 5, false)]);
        assert_eq!(good.judge(&[shown(1), shown(2)], true).unwrap().admitted, 2);
        let bad = history(&[(1, 5, true), (2, 9, true), (3, 5, true)]);
        assert!(bad.judge(&[shown(2)], false).unwrap_err().contains("after token 9 had been admitted"));
    }

    #[test]
    fn a_resource_that_shows_what_it_refused_or_lost_is_found() {
        let calls = history(&[(1, 5, true), (2, 9, true), (3, 5, false)]);
        for (writes, keeps_all, word) in [
            (vec![shown(1), shown(2), shown(3)], true, "answered as not made"),
            (vec![shown(2), shown(1)], true, "after a greater one"),
            (vec![shown(2)], true, "missing"),
            (vec![shown(1)], false, "although"),
            (vec![shown(7)], false, "never sent"),
        ] {
            assert!(calls.judge(&writes, keeps_all).unwrap_err().contains(word), "{writes:?}");
        }
    }

    #[test]
    fn a_refusal_without_a_greater_token_is_found() {
        let calls = history(&[(1, 5, true), (3, 5, false)]);
        assert!(calls.judge(&[shown(1)], false).unwrap_err().contains("never offered"));
    }
}
