use tenure_core::Token;
use tenure_fence::FencingToken;
use tenure_store::{Key, Reason, StoreError};

use super::commands::Commands;
use crate::cluster::hash_slot;

/// One call of the script: its keys and arguments.
#[derive(Debug)]
pub(crate) struct FencedWrite<'a> {
    pub(crate) mark: &'a str,
    /// The record of the lease, if the script checks it too.
    record: Option<&'a str>,
    lease: &'a Key,
    /// The token as the mark has it.
    text: String,
    /// The least token that the mark must show.
    least: String,
    flags: String,
    commands: Commands<'a>,
    /// The number of words of each command.
    counts: Vec<String>,
}

impl<'a> FencedWrite<'a> {
    pub(super) fn new(
        mark: &'a str,
        record: Option<&'a str>,
        offered: &'a FencingToken,
        least: Token,
        commands: Commands<'a>,
    ) -> Self {
        let mut flags = String::new();
        if offered.token() < least {
            flags.push('l');
        }
        if record.is_some() {
            flags.push('g');
        }
        let counts = commands.words.iter().map(|words| words.len().to_string()).collect();
        let (text, least) = (offered.to_string(), least.to_string());
        Self { mark, record, lease: offered.name(), text, least, flags, commands, counts }
    }

    /// Writes the mark also if it does not change: a confirmation of replicas covers the writes of its own connection, and
    /// another one may have raised the mark.
    pub(super) fn rewriting_the_mark(mut self) -> Self {
        self.flags.push('w');
        self
    }

    /// The keys of the script. They are all declared, so that the server refuses the call before it runs if it serves one
    /// of them no longer, or if the user may not use one of them.
    pub(crate) fn keys(&self) -> Vec<&[u8]> {
        let own = [Some(self.mark), self.record].into_iter().flatten().map(str::as_bytes);
        own.chain(self.commands.keys.iter().copied()).collect()
    }

    /// The arguments of the script.
    pub(crate) fn arguments(&self) -> Vec<&[u8]> {
        let mut arguments = vec![self.text.as_bytes(), self.least.as_bytes(), self.flags.as_bytes()];
        for (count, words) in self.counts.iter().zip(&self.commands.words) {
            arguments.push(count.as_bytes());
            arguments.extend(words);
        }
        arguments
    }

    /// Refuses keys that a cluster serves in different slots: no script reaches more than one.
    pub(crate) fn must_be_in_one_slot(&self) -> Result<(), StoreError> {
        let slot = hash_slot(self.mark.as_bytes());
        let refused = |what: String| Err(StoreError::refused(Reason::Invalid, what));
        if let Some(record) = self.record.filter(|record| hash_slot(record.as_bytes()) != slot) {
            return refused(format!(
                "the record {record:?} of lease {lease} is in another slot of the cluster than the mark {mark:?}, so no script \
                 can check both. Name the resource and its keys with the hash tag of the lease, as in {{{lease}}}:ledger",
                lease = self.lease,
                mark = self.mark
            ));
        }
        if let Some(key) = self.commands.keys.iter().find(|key| hash_slot(key) != slot) {
            return refused(format!(
                "the key {key:?} is in another slot of the cluster than the mark {mark:?}, so no script can write both. Give the \
                 key the hash tag of the resource, the part of the mark in braces",
                key = String::from_utf8_lossy(key),
                mark = self.mark
            ));
        }
        Ok(())
    }
}
