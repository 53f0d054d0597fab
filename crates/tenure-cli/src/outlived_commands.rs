use std::time::Duration;

use serde_json::{Value, json};
use tenure::record::{Nonce, Record};
use tenure::{Coordinator, Key};

use crate::outlived_reports::{self, OutlivedReports};
use crate::progress::{Importance, Notice, ProgressOutput, with_slot};
use crate::published_process::without_secrets_in;
use crate::{duration, output};

/// Commands of former holders that are alive although their lease or slot has run out, and the messages about them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutlivedCommands<'a> {
    pub(crate) coordinator: &'a Coordinator,
    /// URL of the store, for messages.
    pub(crate) url: &'a str,
    pub(crate) progress: &'a ProgressOutput,
    pub(crate) reports: &'a OutlivedReports,
    /// The longest wait for such a command; `None` means no limit.
    pub(crate) limit: Option<Duration>,
}

/// One such command, as JSON and as a sentence.
pub(crate) struct OutlivedCommand {
    pub(crate) fields: Value,
    pub(crate) sentence: String,
}

impl OutlivedCommands<'_> {
    /// The command that is alive although this record has run out; `None` if it has exited by now.
    pub(crate) async fn find(&self, key: &Key, record: &Record) -> Option<OutlivedCommand> {
        let survivors = without_secrets_in(self.coordinator.survivors(record).await);
        if !survivors.tree {
            return None;
        }
        let holder = record.holder.as_ref().map_or("another holder", |holder| holder.id());
        let processes = survivors.processes.iter().map(|it| json!({ "pid": it.pid, "command": it.command }));
        let fields = json!({
            "holder": holder,
            "token": record.token.get(),
            "orphan": !survivors.guards,
            "processes": processes.collect::<Vec<_>>(),
        });
        let sentence = format!(
            "{} on {} of {} (token {}) has run out, but its command is still alive, {}",
            key.titled(),
            self.url,
            output::plain(holder),
            record.token,
            outlived_reports::sentence(&survivors)
        );
        Some(OutlivedCommand { fields: with_slot(key, fields), sentence })
    }

    /// Waits for the grant. While a live command is the reason, reports its processes, except those of these terms.
    pub(crate) async fn report_while<T>(&self, said: Vec<Nonce>, granted: impl Future<Output = T>) -> T {
        tokio::select! {
            granted = granted => granted,
            never = self.report_each(said) => never,
        }
    }

    /// Reports each lease that has run out with a live command, which this process waits for.
    async fn report_each<T>(&self, mut said: Vec<Nonce>) -> T {
        loop {
            let (key, record) = self.reports.waited_for(&said).await;
            said.push(record.term);
            if let Some(command) = self.find(&key, &record).await {
                self.report_wait(command);
            }
        }
    }

    /// Reports that this process waits for the command.
    pub(crate) fn report_wait(&self, command: OutlivedCommand) {
        let waited = match self.limit {
            Some(limit) => format!("Waiting for it to end, for at most {}", duration::exact(limit)),
            None => "Waiting for it to end".to_owned(),
        };
        self.progress.say(&Notice {
            name: "outlived",
            fields: command.fields,
            sentence: format!("{}. {waited}", command.sentence),
            importance: Importance::News,
        });
    }

    /// Reports that the lease was taken although the former command is alive.
    pub(crate) async fn report_taken(&self) {
        if self.limit.is_none() {
            return;
        }
        let Some((key, record)) = self.reports.taken().await else { return };
        let Some(command) = self.find(&key, &record).await else { return };
        let what = if key.slot_index().is_some() { "slot" } else { "lease" };
        self.progress.say(&Notice {
            name: "orphan_ignored",
            fields: command.fields,
            sentence: format!(
                "{}. --orphan-wait is over: taking over the {what}, and both may act at once",
                command.sentence
            ),
            importance: Importance::Trouble,
        });
    }
}
