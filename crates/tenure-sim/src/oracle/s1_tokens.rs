use super::Judgement;

/// S1: tokens strictly increase by grant; one token, one grant.
///
/// While the record is not tampered with, every applied grant counts. After that, only believed grants count: a late
/// request of a contender that has given up may still land on a restored record, but no holder acts under it. On a
/// store without a clock only one promise is left after tampering: a process that has seen a greater token is not
/// granted. See [`after_going_back`](Self::after_going_back).
#[derive(Debug)]
pub(crate) struct Tokens {
    store_has_clock: bool,
    tampered: bool,
    greatest_applied: u64,
    /// The believed grants: the number of each among all applied writes, and its token.
    believed: Vec<(u64, u64)>,
}

impl Tokens {
    pub(crate) fn new(store_has_clock: bool) -> Self {
        Self { store_has_clock, tampered: false, greatest_applied: 0, believed: Vec::new() }
    }

    pub(crate) fn tampered(&mut self) {
        self.tampered = true;
    }

    /// True if nothing is promised any more: the record was tampered with on a store without a clock.
    pub(crate) fn are_void(&self) -> bool {
        self.tampered && !self.store_has_clock
    }

    /// The greatest token of all applied grants.
    pub(crate) fn greatest_applied(&self) -> u64 {
        self.greatest_applied
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

    /// A grant is believed; it was the `order`-th of all applied writes.
    pub(crate) fn believed(&mut self, order: u64, token: u64) -> Judgement {
        let wrong = self.believed.iter().copied().find(|(other_order, other)| {
            if *other_order < order { *other >= token } else { *other <= token }
        });
        self.believed.push((order, token));
        match wrong {
            Some((other_order, other)) if !self.are_void() => {
                let word = if other_order < order { "before" } else { "after" };
                Err(format!(
                    "a grant with token {token} is believed, but one with token {other} came {word} it"
                ))
            }
            _ => Ok(()),
        }
    }

    /// A grant is believed by a process that had seen a greater token than that of the replaced record, and had sent
    /// the read of that record only afterwards.
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
