use tenure_core::record::Nonce;

use super::Judgement;

/// S6: what is lost stays lost, and nothing is vacated under work that goes on.
#[derive(Debug, Default)]
pub(crate) struct StaysLost {
    lost: Vec<bool>,
}

impl StaysLost {
    /// A lease was told that it is lost, or somebody latched it so.
    pub(crate) fn lost(&mut self, lease: u32) {
        let lease = lease as usize;
        if self.lost.len() <= lease {
            self.lost.resize(lease + 1, false);
        }
        self.lost[lease] = true;
    }

    /// A lease begins to believe, or believes for longer.
    pub(crate) fn believes(&self, lease: u32) -> Judgement {
        match self.lost.get(lease as usize) {
            Some(true) => Err(format!("lease {lease} was lost, and is believed again")),
            _ => Ok(()),
        }
    }

    /// A lease is told that it goes on, at an instant of its own clock. Its deadline must not have passed: what is
    /// learned too late revives nothing.
    pub(crate) fn goes_on(&self, lease: u32, now: u64, deadline: u64) -> Judgement {
        if now < deadline {
            return Ok(());
        }
        Err(format!(
            "lease {lease} was told that it goes on, {} µs after its deadline",
            (now - deadline) / 1000
        ))
    }

    /// A term was resumed by a handle, over the record that carries this nonce. A handle that was used is lost: it is
    /// good for the record that it tells of, and for no later one.
    pub(crate) fn resumed(&self, handle: Nonce, replaced: Nonce) -> Judgement {
        if handle == replaced {
            return Ok(());
        }
        Err(format!("the handle of write {handle} was good for write {replaced}"))
    }

    /// A lease was vacated.
    pub(crate) fn vacated(&self, lease: u32, acting: bool) -> Judgement {
        if acting { Err(format!("lease {lease} was vacated while work went on under it")) } else { Ok(()) }
    }
}
