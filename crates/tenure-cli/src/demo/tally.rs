use std::collections::BTreeMap;

use super::batch::{self, ROWS};
use super::ledger::LedgerRow;

/// The content of the ledger, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) rows_written: u32,
    /// Rows of the batch that are in the ledger more than once.
    pub(super) rows_twice: Vec<u32>,
    /// Rows of the batch that are not in the ledger.
    pub(super) rows_missing: Vec<u32>,
    pub(super) cents_counted: u64,
    /// Rows that the ledger accepted after one with a greater token.
    pub(super) stale_rows: u32,
}

impl Tally {
    pub(super) fn of(rows: &[LedgerRow]) -> Self {
        let mut times: BTreeMap<u32, u32> = batch::batch().map(|payment| (payment.row, 0)).collect();
        let (mut highest, mut stale_rows) = (None, 0);
        for row in rows {
            *times.entry(row.row).or_default() += 1;
            stale_rows += u32::from(Some(row.token) < highest);
            highest = highest.max(Some(row.token));
        }
        let those = |wanted: fn(u32) -> bool| {
            let found = times.iter().filter(|&(_, &count)| wanted(count));
            found.map(|(&row, _)| row).collect::<Vec<_>>()
        };
        Self {
            rows_written: rows.len() as u32,
            rows_twice: those(|count| count > 1),
            rows_missing: those(|count| count == 0),
            cents_counted: rows.iter().map(|row| row.cents).sum(),
            stale_rows,
        }
    }

    /// True if every payment is in the ledger once.
    pub(super) fn is_right(&self) -> bool {
        self.rows_written == ROWS && self.rows_twice.is_empty() && self.rows_missing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use tenure::Token;

    use super::super::step::WorkerName;
    use super::*;

    fn rows(those: &[(u32, u64)]) -> Vec<LedgerRow> {
        let row = |&(row, token): &(u32, u64)| {
            let cents = batch::batch().find(|payment| payment.row == row).unwrap().cents;
            LedgerRow { row, cents, by: WorkerName::A, token: Token::new(token).unwrap() }
        };
        those.iter().map(row).collect()
    }

    #[test]
    fn a_row_that_is_there_twice_is_counted_twice() {
        let mut written: Vec<_> = (1..=ROWS).map(|row| (row, if row < 3 { 7 } else { 8 })).collect();
        assert!(Tally::of(&rows(&written)).is_right());
        written.push((3, 7));
        let tally = Tally::of(&rows(&written));
        assert!(!tally.is_right());
        assert_eq!((tally.rows_written, tally.rows_twice.as_slice(), tally.stale_rows), (9, &[3][..], 1));
        assert_eq!(tally.cents_counted, batch::total() + 21_000);
    }

    #[test]
    fn a_row_that_is_not_there_is_missing() {
        let tally = Tally::of(&rows(&[(1, 7), (2, 7), (1, 7)]));
        assert_eq!((tally.rows_twice, tally.rows_missing.len(), tally.stale_rows), (vec![1], 6, 0));
    }
}
