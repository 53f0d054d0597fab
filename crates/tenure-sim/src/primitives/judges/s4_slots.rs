use crate::oracle::Judgement;

/// S4: at most as many slots of a group are believed at one instant as the group has, by the size that was current.
///
/// A shrink lets present holders finish. So a slot beyond the present size may be believed only if the group was larger
/// at some instant since the grant of that slot.
#[derive(Debug, Default)]
pub(crate) struct GroupJudge {
    /// The sizes, each with the true time of its beginning; `None` after a deletion from outside.
    sizes: Vec<(u64, Option<u16>)>,
    believers: Vec<Believer>,
}

/// A holder that believes in its slot.
#[derive(Clone, Copy, Debug)]
struct Believer {
    lease: u32,
    index: u16,
    /// True time at which the store applied its grant.
    granted: u64,
    /// True time at which its belief ends by its clock.
    end: u64,
}

impl GroupJudge {
    /// The size that the group has now.
    pub(crate) fn size(&self) -> Option<u16> {
        self.sizes.last().and_then(|(_, size)| *size)
    }

    /// The group has another size; `None` if its record was deleted from outside.
    pub(crate) fn resized(&mut self, now: u64, size: Option<u16>) {
        self.sizes.push((now, size));
    }

    /// A slot is believed. `tainted` is true if its record was deleted from outside since its grant.
    pub(crate) fn believes(
        &mut self,
        now: u64,
        lease: u32,
        index: u16,
        granted: u64,
        end: u64,
        tainted: bool,
    ) -> Judgement {
        self.believers.retain(|other| other.end > now && other.lease != lease);
        if tainted {
            return Ok(());
        }
        self.believers.push(Believer { lease, index, granted, end });
        match self.largest_since(granted) {
            Some(largest) if index >= largest => {
                let slots = format!("{largest} slot{}", if largest == 1 { "" } else { "s" });
                return Err(format!(
                    "slot {index} is believed, but its group has {slots} since before its grant"
                ));
            }
            _ => {}
        }
        let first = self.believers.iter().map(|believer| believer.granted).min().unwrap_or(now);
        match self.largest_since(first) {
            Some(largest) if self.believers.len() > usize::from(largest) => {
                Err(format!("{} slots of a group of {largest} are believed", self.believers.len()))
            }
            _ => Ok(()),
        }
    }

    /// A contender that expects this number of slots has got one, by a request that began at `since`: the group had that
    /// number at some instant since then.
    pub(crate) fn expected(&self, size: u16, since: u64) -> Judgement {
        let first = self.sizes.iter().rposition(|(at, _)| *at <= since).unwrap_or(0);
        if self.sizes[first..].iter().any(|(_, had)| had.is_none_or(|had| had == size)) {
            return Ok(());
        }
        Err(format!(
            "a slot was granted to a contender that expects {size} slots, and the group had another size"
        ))
    }

    /// The belief in a slot lasts longer.
    pub(crate) fn extends(&mut self, lease: u32, end: u64) {
        for believer in self.believers.iter_mut().filter(|believer| believer.lease == lease) {
            believer.end = end;
        }
    }

    /// The belief in a slot has ended.
    pub(crate) fn ends(&mut self, lease: u32) {
        self.believers.retain(|believer| believer.lease != lease);
    }

    /// The record of this slot was deleted from outside: its present holder is no longer promised exclusion.
    pub(crate) fn tampered(&mut self, index: u16) {
        self.believers.retain(|believer| believer.index != index);
    }

    /// Number of believed slots below this index.
    pub(crate) fn believers_below(&self, now: u64, index: u16) -> usize {
        self.believers.iter().filter(|believer| believer.end > now && believer.index < index).count()
    }

    /// Number of slots below this index that have been believed since before this instant.
    pub(crate) fn believers_granted_before(&self, since: u64, index: u16) -> usize {
        let before = |believer: &&Believer| believer.granted <= since && believer.index < index;
        self.believers.iter().filter(before).count()
    }

    /// Number of believed slots from this index on.
    pub(crate) fn believers_from(&self, now: u64, index: u16) -> usize {
        self.believers.iter().filter(|believer| believer.end > now && believer.index >= index).count()
    }

    /// The largest size of the group since this instant; `None` if the group had no size in that time.
    fn largest_since(&self, since: u64) -> Option<u16> {
        let first = self.sizes.iter().rposition(|(at, _)| *at <= since).unwrap_or(0);
        let sizes = &self.sizes[first..];
        if sizes.iter().any(|(_, size)| size.is_none()) {
            return None;
        }
        sizes.iter().filter_map(|(_, size)| *size).max()
    }
}

/// S4: a resize never evicts a present holder.
pub(crate) fn is_not_evicted(index: u16, evicted: bool) -> Judgement {
    if evicted { Err(format!("the holder of slot {index} was evicted by a resize")) } else { Ok(()) }
}
