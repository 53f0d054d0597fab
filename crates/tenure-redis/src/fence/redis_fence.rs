use std::fmt;

use redis::{Cmd, Value};
use tenure_core::Token;
use tenure_fence::{Fence, FenceError, FencingToken, Seal, SeenMark};
use tenure_store::{OpenError, Reason, StoreError};

use super::commands::Commands;
use super::{FenceAnswer, FencedWrite, PartlyWritten};
use crate::{Redis, classify};

/// A fence for the keys of a program on a Redis server: a write is a list of commands, and one script checks the token and
/// runs them.
///
/// ```no_run
/// # async fn example(lease: &tenure::Lease) -> Result<(), Box<dyn std::error::Error>> {
/// use tenure_redis::{Redis, RedisFence, redis::Cmd};
///
/// let store = Redis::builder("127.0.0.1:6379").open()?;
/// let ledger = RedisFence::new(&store, "ledger")?;
/// lease.fenced(&ledger).seal().await?;
/// let replies = lease
///     .fenced(&ledger)
///     .write(&[Cmd::set("ledger:last", "order 7"), Cmd::incr("ledger:total", 20)])
///     .await?;
/// # drop(replies);
/// # Ok(())
/// # }
/// ```
///
/// Every program that writes to these keys must write through a fence of the same resource name. The mark, the greatest token
/// with its lease, is the hash [`mark_key`](Self::mark_key).
///
/// It uses the connection of the store: that one sends every command once, connects again after a failure, follows the nodes
/// of a cluster, and refuses a server that would evict the mark. The database is that of the store.
///
/// # Commands
///
/// A fenced write carries commands that read or change the keys that they name. Commands that block, or that change the
/// connection, the scripts or the server, are refused before anything is sent ([`Reason::Invalid`]). In a cluster, all keys
/// must be in the slot of the mark: give them its hash tag, `{ledger}:last`.
///
/// A script cannot undo a command. If a command fails, for example because its key has a value of another type, those before
/// it stay applied, and those behind it do not run. The error is [`FenceError::Refused`] if the first one failed: no command
/// had an effect. Otherwise it is [`FenceError::Unknown`], and its source is [`PartlyWritten`].
///
/// Replies are those of scripts: in the form of RESP2, and whole numbers beyond 2⁵³ lose their last digits.
///
/// # What a server can forget
///
/// The mark is as durable as the keys beside it. A restart that loses writes loses both. A fence remembers the greatest token
/// that it has seen, and refuses a smaller mark with [`FenceError::WentBack`] until [`acknowledge`](Self::acknowledge). A process
/// that has just started remembers nothing. `docs/stores/redis.md` says what helps.
pub struct RedisFence {
    store: Redis,
    resource: String,
    mark: String,
    checks_grants: bool,
    seen: SeenMark,
}

impl RedisFence {
    /// The fence of this resource: a name that its writers choose, and that has no other meaning.
    ///
    /// In a cluster, the hash tag of the name, or the complete name if it has none, decides the slot. A name has no other
    /// braces.
    pub fn new(store: &Redis, resource: &str) -> Result<Self, OpenError> {
        let mark = store.names().mark(resource)?;
        let (store, resource) = (store.clone(), format!("{resource} on {store}"));
        Ok(Self { store, resource, mark, checks_grants: false, seen: SeenMark::default() })
    }

    /// Also checks the record of the lease, which must be in the same store. Then a stale token is refused from the moment at
    /// which the next one is granted, before its holder has written anything. A token that is greater than that of the latest
    /// grant is refused with [`FenceError::NotGranted`].
    ///
    /// In a cluster, the record must be in the slot of the mark: name the resource with the hash tag of the lease, such as
    /// `{billing/nightly}:ledger`.
    #[must_use]
    pub fn checking_grants(self) -> Self {
        Self { checks_grants: true, ..self }
    }

    /// Name of the Redis key of the mark, for operators: a hash with the field `mark`, as
    /// `LEASE=TOKEN`.
    pub fn mark_key(&self) -> &str {
        &self.mark
    }

    /// Accepts that the resource shows this token, although it has shown a greater one: the token `shown` of
    /// [`FenceError::WentBack`].
    ///
    /// Call it after an operator has inspected the data, or has deleted the mark to give the resource to another lease (zero).
    /// From then on, every token that is not smaller than the mark is admitted again, also one that was refused before.
    pub fn acknowledge(&self, shown: Token) {
        self.seen.acknowledge(shown);
    }

    async fn run(&self, token: &FencingToken, commands: &[Cmd]) -> Result<Vec<Value>, FenceError> {
        let checked = Commands::check(commands, self.store.names())
            .map_err(|what| FenceError::refused(&self.resource, Reason::Invalid, what))?;
        let least = self.seen.least(&self.resource, token)?;
        let record = self.checks_grants.then(|| self.store.record_of(token.name()));
        let mut write = FencedWrite::new(&self.mark, record.as_deref(), token, least, checked);
        if self.store.waits_for_replicas() {
            write = write.rewriting_the_mark();
        }
        match self.store.run_fenced(&write).await.map_err(|error| self.failed(error))? {
            FenceAnswer::Applied(replies) => {
                self.seen.note(token);
                Ok(replies)
            }
            FenceAnswer::Failed { error, replies } => {
                self.seen.note(token);
                Err(self.command_failed(commands, error, replies))
            }
            FenceAnswer::Mark(mark) => {
                if mark.name() == token.name() {
                    self.seen.note(&mark);
                }
                token.check(&self.resource, Some(&mark))?;
                let what = "the answer of the server contradicts itself";
                Err(FenceError::unknown(&self.resource, what))
            }
            FenceAnswer::WentBack(shown) => {
                let (resource, offered) = (self.resource.clone(), token.clone());
                Err(FenceError::WentBack { resource, offered, seen: least, shown })
            }
            FenceAnswer::Granted(granted) if token.token() < granted => {
                Err(FenceError::stale(&self.resource, token, granted))
            }
            FenceAnswer::Granted(granted) => {
                let (resource, offered) = (self.resource.clone(), token.clone());
                Err(FenceError::NotGranted { resource, offered, granted })
            }
            FenceAnswer::ForeignMark => Err(self.foreign(format!(
                "the Redis key {:?} is not the mark of a fence. Inspect it with TYPE and HGETALL, or use another resource name",
                self.mark
            ))),
            FenceAnswer::ForeignRecord => Err(self.foreign(format!(
                "the Redis key {:?} is not the record of a lease that this version understands",
                record.unwrap_or_default()
            ))),
        }
    }

    fn foreign(&self, what: String) -> FenceError {
        FenceError::Foreign { resource: self.resource.clone(), what }
    }

    /// The error of a call that has no answer of the script.
    fn failed(&self, error: StoreError) -> FenceError {
        match error {
            StoreError::Refused(refused) if refused.reason == Reason::Damaged => self.foreign(format!(
                "the Redis key {:?}, or the record of the lease, is not a hash of Tenure ({}). Inspect it with TYPE",
                self.mark, refused.source
            )),
            StoreError::Refused(refused) => {
                FenceError::refused(&self.resource, refused.reason, refused.source)
            }
            other => FenceError::unknown(&self.resource, other),
        }
    }

    fn command_failed(&self, commands: &[Cmd], error: String, replies: Vec<Value>) -> FenceError {
        let name = commands.get(replies.len()).and_then(|command| match command.args_iter().next() {
            Some(redis::Arg::Simple(name)) => Some(String::from_utf8_lossy(name).into_owned()),
            _ => None,
        });
        let partly =
            PartlyWritten { commands: commands.len(), name: name.unwrap_or_default(), error, replies };
        if !partly.replies.is_empty() {
            return FenceError::unknown(&self.resource, partly);
        }
        let reason = classify::reason_of_command(&partly.error);
        let what = format!(
            "command 1 of {} ({}) failed, and no command had an effect: {}",
            partly.commands, partly.name, partly.error
        );
        FenceError::refused(&self.resource, reason, what)
    }
}

impl Fence for RedisFence {
    type Write<'w> = &'w [Cmd];
    type Written = Vec<Value>;

    /// Runs these commands, in one atomic step with the check. Returns their replies.
    ///
    /// If the future is dropped before it is ready, the outcome is unknown.
    async fn write<'w>(
        &'w self,
        token: &'w FencingToken,
        commands: &'w [Cmd],
    ) -> Result<Vec<Value>, FenceError> {
        self.run(token, commands).await
    }
}

impl Seal for RedisFence {
    /// Raises the mark. It is as durable as any write on this server.
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        self.run(token, &[]).await.map(drop)
    }
}

impl fmt::Display for RedisFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)
    }
}

impl fmt::Debug for RedisFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisFence({self})")
    }
}
