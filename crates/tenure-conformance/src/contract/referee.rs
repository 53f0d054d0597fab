//! Finds the winner of a race from the stored value, and not from the answers that the racers received.

use std::fmt;

use bytes::Bytes;
use tenure_store::{Entry, Put, StoreError, Version};

use crate::stop::{Stop, ensure, fail};

/// The answer that one racer received.
#[derive(Clone, Debug)]
pub(super) enum RacerAnswer {
    Applied(Version),
    Conflict,
    /// Certainly not applied.
    Refused(String),
    /// Unknown, or throttled: the stored value decides.
    Uncertain(String),
    /// The racer's task died before an answer.
    Nothing,
}

impl RacerAnswer {
    pub(super) fn of(answer: Result<Put, StoreError>) -> Self {
        match answer {
            Ok(Put::Applied(applied)) => Self::Applied(applied.version),
            Ok(Put::Conflict(_)) => Self::Conflict,
            Err(error @ StoreError::Refused(_)) => Self::Refused(error.to_string()),
            Err(error) => Self::Uncertain(error.to_string()),
        }
    }
}

impl fmt::Display for RacerAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(version) => write!(f, "applied as version {version}"),
            Self::Conflict => f.write_str("conflict"),
            Self::Refused(why) | Self::Uncertain(why) => f.write_str(why),
            Self::Nothing => f.write_str("nothing at all"),
        }
    }
}

/// Judges rounds, and counts them. A bad round does not end the race: the number of bad rounds shows how severe the
/// fault is.
#[derive(Debug, Default)]
pub(super) struct Referee {
    rounds: usize,
    decided: usize,
    uncertain: usize,
    resolved: usize,
    bad: usize,
    /// Maximum number of racers in one round whose answer said that they won.
    winners_most: usize,
    /// Observation in the first bad round.
    first: Option<String>,
}

/// End of a good round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundEnd {
    /// The winner's answer said that it won.
    Decided,
    /// The winner received no definite answer.
    Resolved,
    /// No racer won, and some received no definite answer.
    Open,
}

impl Referee {
    /// Judges one round in which each racer had its own value. A skip ends the check; a bad round is counted.
    pub(super) fn judge(
        &mut self,
        values: &[Bytes],
        told: &[RacerAnswer],
        stored: Option<&Entry>,
    ) -> Result<(), Stop> {
        self.note(told, judge(values, told, stored))
    }

    /// Counts a round, however it ended.
    pub(super) fn note(&mut self, told: &[RacerAnswer], round: Result<RoundEnd, Stop>) -> Result<(), Stop> {
        self.rounds += 1;
        self.winners_most = self.winners_most.max(winners(told));
        self.uncertain += told
            .iter()
            .filter(|told| matches!(told, RacerAnswer::Uncertain(_) | RacerAnswer::Nothing))
            .count();
        match round {
            Ok(RoundEnd::Open) => {}
            Ok(round) => {
                self.decided += 1;
                self.resolved += usize::from(round == RoundEnd::Resolved);
            }
            Err(Stop::Failed(why)) => {
                self.bad += 1;
                self.first.get_or_insert_with(|| format!("round {}: {why}", self.rounds));
            }
            Err(skipped @ Stop::Skipped(_)) => return Err(skipped),
        }
        Ok(())
    }

    /// Judges by the answers alone; for a store without linearizable reads there is no other evidence.
    pub(super) fn count_winners(told: &[RacerAnswer]) -> Result<(), Stop> {
        let winners = winners(told);
        ensure!(winners <= 1, "{winners} of {} racers were told that they won", told.len());
        Ok(())
    }

    /// Result after the last round.
    pub(super) fn sum(&self) -> Result<String, Stop> {
        if let Some(first) = &self.first {
            let up_to = match self.winners_most {
                0 | 1 => String::new(),
                winners => format!(", with up to {winners} winners"),
            };
            let (bad, rounds) = (self.bad, self.rounds);
            fail!("{bad} of {rounds} rounds were not won by exactly one{up_to}; {first}");
        }
        ensure!(
            self.decided * 2 > self.rounds,
            "only {} of {} rounds had a winner; {} answers were unknown",
            self.decided,
            self.rounds,
            self.uncertain
        );
        let mut sum = format!("{} rounds", self.rounds);
        if self.uncertain > 0 {
            sum += &format!(
                ", {} unknown outcomes, {} of them wins, {} rounds without a winner",
                self.uncertain,
                self.resolved,
                self.rounds - self.decided
            );
        }
        Ok(sum)
    }
}

/// Exactly one value may be stored, and it must be that of the racer whose answer said that it won.
fn judge(values: &[Bytes], told: &[RacerAnswer], stored: Option<&Entry>) -> Result<RoundEnd, Stop> {
    Referee::count_winners(told)?;
    let winner = stored.and_then(|entry| values.iter().position(|value| *value == entry.value));
    let Some((winner, entry)) = winner.zip(stored) else { return no_winner(told, stored) };
    let round = match &told[winner] {
        RacerAnswer::Applied(version) => {
            ensure!(
                entry.version == *version,
                "racer {winner} was told that it wrote version {version}, and its value has version {}",
                entry.version
            );
            RoundEnd::Decided
        }
        RacerAnswer::Uncertain(_) | RacerAnswer::Nothing => RoundEnd::Resolved,
        told @ (RacerAnswer::Conflict | RacerAnswer::Refused(_)) => {
            fail!("the value of racer {winner} is stored, and it was told: {told}");
        }
    };
    for (racer, told) in told.iter().enumerate() {
        ensure!(
            racer == winner || !matches!(told, RacerAnswer::Applied(_)),
            "racer {racer} was told that it won, and the value of racer {winner} is stored"
        );
    }
    Ok(round)
}

fn no_winner(told: &[RacerAnswer], stored: Option<&Entry>) -> Result<RoundEnd, Stop> {
    let winner = told.iter().position(|told| matches!(told, RacerAnswer::Applied(_)));
    if let Some(winner) = winner {
        let stored = stored.map_or("nothing".to_owned(), |entry| format!("version {}", entry.version));
        fail!("racer {winner} was told that it won, and {stored} is stored");
    }
    let open = told.iter().any(|told| matches!(told, RacerAnswer::Uncertain(_) | RacerAnswer::Nothing));
    ensure!(open, "no racer won a race that one must win; the first answer was: {}", told[0]);
    Ok(RoundEnd::Open)
}

fn winners(told: &[RacerAnswer]) -> usize {
    told.iter().filter(|told| matches!(told, RacerAnswer::Applied(_))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(told: &[RacerAnswer], stored: Option<&'static str>) -> Result<RoundEnd, Stop> {
        let values = [Bytes::from("a"), Bytes::from("b")];
        let entry = stored.map(|value| Entry::new(value.into(), Version::new("1")));
        super::judge(&values, told, entry.as_ref())
    }

    fn won() -> RacerAnswer {
        RacerAnswer::Applied(Version::new("1"))
    }

    fn unknown() -> RacerAnswer {
        RacerAnswer::Uncertain("cut".into())
    }

    #[test]
    fn one_winner_whose_value_is_stored_is_a_good_round() {
        assert!(judge(&[won(), RacerAnswer::Conflict], Some("a")).is_ok());
        assert!(
            judge(&[RacerAnswer::Conflict, unknown()], Some("b")).is_ok(),
            "an unknown outcome may be the win"
        );
        assert!(judge(&[RacerAnswer::Conflict, unknown()], None).is_ok(), "or may land later");
    }

    #[test]
    fn every_other_round_is_a_bad_one() {
        assert!(judge(&[won(), won()], Some("a")).is_err(), "two winners");
        assert!(judge(&[won(), RacerAnswer::Conflict], Some("b")).is_err(), "the loser's value");
        assert!(judge(&[won(), unknown()], Some("b")).is_err(), "the winner was overwritten");
        assert!(judge(&[won(), RacerAnswer::Conflict], None).is_err(), "the win is lost");
        assert!(judge(&[RacerAnswer::Conflict, RacerAnswer::Conflict], None).is_err(), "no winner");
        assert!(
            judge(&[RacerAnswer::Conflict, RacerAnswer::Refused("no".into())], Some("b")).is_err(),
            "refused and stored"
        );
    }

    #[test]
    fn a_store_that_never_answers_has_not_shown_that_it_is_atomic() {
        let mut referee = Referee::default();
        for _ in 0..4 {
            referee.judge(&["a".into()], &[unknown()], None).unwrap();
        }
        assert!(referee.sum().is_err());
    }

    #[test]
    fn the_failure_of_an_occasional_liar_names_its_rate() {
        let mut referee = Referee::default();
        for round in 0..10 {
            let told = [won(), if round % 4 == 1 { won() } else { RacerAnswer::Conflict }];
            let entry = Entry::new("a".into(), Version::new("1"));
            referee.judge(&["a".into(), "b".into()], &told, Some(&entry)).unwrap();
        }
        let Err(Stop::Failed(why)) = referee.sum() else { panic!("it was seen to lie") };
        assert_eq!(
            why,
            "3 of 10 rounds were not won by exactly one, with up to 2 winners; round 2: 2 of 2 racers were told that \
             they won"
        );
    }
}
