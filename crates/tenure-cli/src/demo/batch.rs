//! The payments that the demo settles.

/// One payment of the batch: one row of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    /// Its number in the batch, from 1 on.
    pub(super) row: u32,
    pub(super) cents: u64,
}

/// The batch, in the order of its rows.
pub(super) fn batch() -> impl Iterator<Item = Payment> {
    (1..).zip(CENTS).map(|(row, cents)| Payment { row, cents })
}

/// Number of payments.
pub(super) const ROWS: u32 = CENTS.len() as u32;

/// Sum of the batch.
pub(super) fn total() -> u64 {
    CENTS.iter().sum()
}

/// An amount as text: `210.00`.
pub(super) fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

const CENTS: [u64; 8] = [12_500, 8_000, 21_000, 9_950, 4_550, 15_000, 24_000, 5_000];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_has_eight_payments_and_a_round_sum() {
        assert_eq!(batch().count() as u32, ROWS);
        assert_eq!(batch().map(|payment| payment.row).collect::<Vec<_>>(), (1..=ROWS).collect::<Vec<_>>());
        assert_eq!(money(total()), "1000.00");
        assert_eq!(money(5), "0.05");
    }
}
