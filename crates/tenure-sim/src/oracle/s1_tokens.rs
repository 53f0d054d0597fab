use super::Judgement;

/// S1: tokens strictly increase by grant; one token, one grant.
///
/// While nobody tampers with the record, every grant that is applied counts. After that, those count that somebody
/// believes: a late request of a contender that has given up may still land on a restored record, and nobody acts
/// under it. On a store without a clock nothing is promised after tampering, but that whoever has seen a greater token
/// is not granted: see [`after_going_back`](Self::after_going_back).
#[derive(Debug)]
pub(crate) struct Tokens {
    store_has_clock: bool,
    tampered: bool,
    greatest_applied: u64,
    /// The grants that were believed: which of all applied writes each was, and its token.
    believed: Vec<(u64, u64)>,
}

impl Tokens {
    pub(super) fn new(store_has_clock: bool) -> Self {
        Self { store_has_clock, tampered: false, greatest_applied: 0, believed: Vec::new() }
    }

    pub(super) fn tampered(&mut self) {
        self.tampered = true;
    }

    /// Whether nothing is promised any more: the record was tampered with on a store without a clock.
    pub(crate) fn are_void(&self) -> bool {
        self.tampered && !self.store_has_clock
    }

    /// A grant was applied.
    pub(crate) fn applied(&mut self, token: u64) -> Judgement {
        let before = self.greatest_applied;
        self.greatest_applied = before.max(token);
        if self.tampered || token > before {
            return Ok(());
        }
        Err(format!("a grant with token {token} was applied after one with token {before}"))
    }

    /// A grant is believed that was the `order`-th of all applied writes.
    pub(crate) fn believed(&mut self, order: u64, token: u64) -> Judgement {
        let wrong = self.believed.iter().copied().find(|(other_order, other)| {
            if *other_order < order { *other >= token } else { *other <= token }
        });
        self.believed.push((order, token));
        match wrong {
            Some((other_order, other)) if !self.are_void() => {
                let word = if other_order < order { "before" } else { "after" };
                Err(format!(
                    "a grant with token {token} is believed, and one with token {other} came {word} it"
                ))
            }
            _ => Ok(()),
        }
    }

    /// A grant is believed by a process that had seen a greater token than the one in the record it replaced, and
    /// had asked for that record only afterwards.
    pub(crate) fn after_going_back(&self, seen: u64, replaced: u64) -> Judgement {
        if self.store_has_clock || replaced >= seen {
            return Ok(());
        }
        Err(format!(
            "a process that had seen token {seen} was granted over a record with token {replaced}, on a store \
             without a clock"
        ))
    }
}
