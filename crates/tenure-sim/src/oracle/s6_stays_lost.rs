use tenure_core::record::Nonce;

use super::Judgement;

/// S6: a lost lease stays lost, and no lease is vacated while work runs under it.
#[derive(Debug, Default)]
pub(crate) struct StaysLost {
    lost: Vec<bool>,
}

impl StaysLost {
    /// A lease was reported as lost, or latched as lost.
    pub(crate) fn lost(&mut self, lease: u32) {
        let lease = lease as usize;
        if self.lost.len() <= lease {
            self.lost.resize(lease + 1, false);
        }
        self.lost[lease] = true;
    }

    /// The belief of a lease begins, or is extended.
    pub(crate) fn believes(&self, lease: u32) -> Judgement {
        match self.lost.get(lease as usize) {
            Some(true) => Err(format!("lease {lease} was lost, but is believed again")),
            _ => Ok(()),
        }
    }

    /// The machine reports that a lease continues, at an instant `now` of its holder's clock. The deadline must not
    /// have passed: an answer that is received too late revives nothing.
    pub(crate) fn goes_on(&self, lease: u32, now: u64, deadline: u64) -> Judgement {
        if now < deadline {
            return Ok(());
        }
        Err(format!(
            "lease {lease} was reported to continue {} µs after its deadline",
            (now - deadline) / 1000
        ))
    }

    /// A handle resumed a term, over the record with the nonce `replaced`. A handle is valid only for the record that
    /// it describes: once it is used, it is lost.
    pub(crate) fn resumed(&self, handle: Nonce, replaced: Nonce) -> Judgement {
        if handle == replaced {
            return Ok(());
        }
        Err(format!("the handle of write {handle} was accepted for write {replaced}"))
    }

    /// A lease was vacated.
    pub(crate) fn vacated(&self, lease: u32, acting: bool) -> Judgement {
        if acting { Err(format!("lease {lease} was vacated while work ran under it")) } else { Ok(()) }
    }
}
