//! Plain keys: a small value under a key, with a revision, an owner and an optional ttl.

mod entry;
mod key_call;
mod key_memory;
mod replies;
mod revision;

pub use entry::{KeyEntries, KeyEntry};
pub(crate) use key_memory::KeyMemory;
pub use replies::{Creation, Replacement};
pub use revision::Revision;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};
use tenure_core::Holder;
use tenure_core::keys::{KeyAnswer, KeyDenied, KeyOperation, KeyOwner};
use tenure_core::record::{Record, Ttl};
use tenure_store::{Key, Prefix, Store};
use tokio_util::sync::CancellationToken;

use crate::host::entropy::draw;
use crate::keeper::Connection;
use crate::observe::keys as list_keys;
use crate::{Error, ErrorKind};
use key_call::KeyCall;

/// The plain keys of a store, for one owner. Cheap to clone: a clone is the same owner.
///
/// A plain key has at most one entry: a small value, a [`Revision`] that grows with every change, an owner, and an optional
/// ttl. Every change is one conditional write. Leases and plain keys never share a key: each is refused as the other.
///
/// Any participant changes an entry whose revision it knows, and becomes its owner. Only the owner renews and releases
/// it. An owner proves itself by a secret, not by its name: [`Coordinator::keys`](crate::Coordinator::keys) draws a random
/// one, so that the owner ends with the last clone. [`owner`](Self::owner) sets one that lasts.
///
/// An entry with a ttl that this process *knows* to have run out counts as absent. On a store that does not report the age
/// of a version, a process knows it once it has seen the version for slightly longer than the ttl. Before that, the entry is
/// there, and [`KeyEntry::remaining`] says for how long at most.
///
/// ```
/// use std::time::Duration;
/// use tenure::{Coordinator, Creation, Replacement, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tenure::Error> {
/// let keys = Coordinator::connect(Memory::new()).await?.keys();
/// let Creation::Created(entry) = keys.create_if_absent("config/shards", "4", None).await? else {
///     panic!("the key has an entry already");
/// };
/// let Replacement::Updated(entry) = keys.compare_and_set("config/shards", entry.revision, "8", None).await? else {
///     panic!("another participant has changed it");
/// };
/// assert_eq!(&*keys.get("config/shards").await?.expect("it has no ttl").value, "8");
///
/// let hour = Duration::from_secs(3600);
/// keys.create_if_absent("nodes/a", "10.0.0.7", hour).await?;
/// keys.renew("nodes/a").await?;
/// keys.release("nodes/a").await?;
/// # let _ = entry;
/// # Ok(())
/// # }
/// ```
///
/// # Cancellation
///
/// A dropped future begins no further call on the store. A write that was sent may still be applied: read the key to find
/// out.
#[derive(Clone, Debug)]
#[must_use = "keys do nothing until one of their calls is awaited"]
pub struct Keys {
    connection: Connection,
    memory: Arc<KeyMemory>,
    owner: KeyOwner,
    wait: Option<Duration>,
}

impl Keys {
    pub(crate) fn new(connection: Connection, memory: Arc<KeyMemory>) -> Self {
        let (holder, secret) = (Arc::clone(&connection.holder), draw::<32>());
        let owner = KeyOwner { holder, secret_hash: hash(&secret) };
        Self { connection, memory, owner, wait: None }
    }

    /// Sets the owner: a name, which is informational, and the secret by which it is known. All processes with the same
    /// secret are one owner.
    pub fn owner(mut self, name: Holder, secret: impl AsRef<[u8]>) -> Self {
        self.owner = KeyOwner { holder: Arc::new(name), secret_hash: hash(secret.as_ref()) };
        self
    }

    /// Sets the longest time that a creation waits for the present entry to run out or to be released. Default: it does
    /// not wait.
    pub fn waiting(mut self, limit: Duration) -> Self {
        self.wait = Some(limit);
        self
    }

    /// Creates an entry, unless there is one.
    ///
    /// The value has at most 4,096 bytes. Without a ttl the entry never runs out.
    pub async fn create_if_absent(
        &self,
        key: impl AsRef<str>,
        value: &str,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<Creation, Error> {
        self.create_key(&Key::parse(key.as_ref())?, value, ttl.into()).await
    }

    /// Replaces the entry that has exactly this revision. The owner of the new entry is this one, and its ttl begins now.
    ///
    /// [`Revision::ABSENT`] creates an entry, as [`create_if_absent`](Self::create_if_absent) does.
    ///
    /// A conflict is definite: nothing was changed. If the outcome cannot be known, because the store's answer was lost
    /// and another participant has changed the entry since, the error is of kind [`ErrorKind::Unavailable`] and says so.
    pub async fn compare_and_set(
        &self,
        key: impl AsRef<str>,
        revision: Revision,
        value: &str,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<Replacement, Error> {
        self.set_key(&Key::parse(key.as_ref())?, revision, value, ttl.into()).await
    }

    /// Reads the entry; `None` if there is none, or it has run out.
    pub async fn get(&self, key: impl AsRef<str>) -> Result<Option<KeyEntry>, Error> {
        self.get_key(&Key::parse(key.as_ref())?).await
    }

    /// Starts the ttl of this owner's entry anew. Its revision stays.
    ///
    /// [`ErrorKind::Lost`] if the entry is another owner's, or there is none. An entry that has run out does not come
    /// back.
    pub async fn renew(&self, key: impl AsRef<str>) -> Result<KeyEntry, Error> {
        let key = Key::parse(key.as_ref())?;
        match self.call(&key, KeyOperation::Renew).await? {
            KeyAnswer::Renewed(seen) => Ok(KeyEntry::new(&key, &seen)),
            answer => Err(self.denied(&key, answer)),
        }
    }

    /// Removes this owner's entry. The next entry of the key has a greater revision.
    ///
    /// [`ErrorKind::Lost`] if the entry is another owner's, or there is none.
    pub async fn release(&self, key: impl AsRef<str>) -> Result<(), Error> {
        let key = Key::parse(key.as_ref())?;
        match self.call(&key, KeyOperation::Release).await? {
            KeyAnswer::Released => Ok(()),
            answer => Err(self.denied(&key, answer)),
        }
    }

    /// The entries under a prefix, in the order of their keys. Each key is read once, several at a time.
    ///
    /// Leases are left out. A key that cannot be read yields its own error. The call has no time limit, because the number
    /// of keys is unlimited.
    pub async fn list(&self, prefix: &Prefix) -> Result<KeyEntries, Error> {
        let keys = self.clone();
        let prefix = prefix.clone();
        let dropped = CancellationToken::new();
        let _guard = dropped.clone().drop_guard();
        let visit = move |store: Arc<dyn Store>| async move {
            let connection = &keys.connection;
            let found = tokio::select! {
                biased;
                () = dropped.cancelled() => return Ok(KeyEntries::new()),
                found = list_keys(&*connection.clock, &*store, &connection.store, &prefix) => found?,
            };
            let reads = found.into_iter().map(|key| {
                let call = keys.key_call(&key, KeyOperation::Get, &dropped);
                let store = Arc::clone(&store);
                async move { (key, call.run(store).await) }
            });
            let answers: Vec<_> = stream::iter(reads).buffered(READS_AT_ONCE).collect().await;
            Ok(answers.into_iter().filter_map(|(key, answer)| keys.listed(key, answer)).collect())
        };
        self.connection.visit(move |store| Box::pin(visit(store))).await
    }

    /// True if this owner may renew and release the entry.
    pub fn owns(&self, entry: &KeyEntry) -> bool {
        entry.secret_hash == Some(self.owner.secret_hash)
    }

    pub(crate) async fn create_key(
        &self,
        key: &Key,
        value: &str,
        ttl: Option<Duration>,
    ) -> Result<Creation, Error> {
        match self.set(key, Revision::ABSENT, value, ttl).await? {
            KeyAnswer::Created(seen) => Ok(Creation::Created(KeyEntry::new(key, &seen))),
            KeyAnswer::Conflict(Some(seen)) => Ok(Creation::Exists(KeyEntry::new(key, &seen))),
            answer => Err(self.denied(key, answer)),
        }
    }

    pub(crate) async fn set_key(
        &self,
        key: &Key,
        revision: Revision,
        value: &str,
        ttl: Option<Duration>,
    ) -> Result<Replacement, Error> {
        match self.set(key, revision, value, ttl).await? {
            KeyAnswer::Created(seen) => Ok(Replacement::Created(KeyEntry::new(key, &seen))),
            KeyAnswer::Updated(seen) => Ok(Replacement::Updated(KeyEntry::new(key, &seen))),
            KeyAnswer::Conflict(seen) => {
                Ok(Replacement::Conflict(seen.map(|seen| KeyEntry::new(key, &seen))))
            }
            answer => Err(self.denied(key, answer)),
        }
    }

    pub(crate) async fn get_key(&self, key: &Key) -> Result<Option<KeyEntry>, Error> {
        match self.call(key, KeyOperation::Get).await? {
            KeyAnswer::Found(seen) => Ok(seen.map(|seen| KeyEntry::new(key, &seen))),
            answer => Err(self.denied(key, answer)),
        }
    }

    /// Finds every mistake of the caller before anything is sent.
    async fn set(
        &self,
        key: &Key,
        revision: Revision,
        value: &str,
        ttl: Option<Duration>,
    ) -> Result<KeyAnswer, Error> {
        let ttl = ttl.map(Ttl::try_from).transpose()?;
        if value.len() > Record::VALUE_MAX {
            let (max, is) = (Record::VALUE_MAX, value.len());
            let sentence = format!("the value of key {key} has at most {max} bytes, not {is}: shorten it");
            return Err(Error::new(ErrorKind::Invalid, sentence));
        }
        let (revision, value) = (revision.token(), value.into());
        self.call(key, KeyOperation::Set { revision, value, ttl }).await
    }

    /// Runs an operation on the keeper's runtime. If the caller drops its future, no further call begins.
    async fn call(&self, key: &Key, operation: KeyOperation) -> Result<KeyAnswer, Error> {
        if operation != KeyOperation::Get {
            self.check_kept(key)?;
        }
        let dropped = CancellationToken::new();
        let call = self.key_call(key, operation, &dropped);
        let _guard = dropped.drop_guard();
        self.connection.visit(move |store| Box::pin(call.run(store))).await
    }

    /// Fails for a change on a store that may lose it. The size of a group is Tenure's own: every participant that uses
    /// the group compares it with its own number.
    fn check_kept(&self, key: &Key) -> Result<(), Error> {
        if self.connection.guarantees.allows_plain_keys() || key.is_reserved() {
            return Ok(());
        }
        let sentence = format!(
            "key {key} on {} is not changed: the store may lose acknowledged writes when its server restarts. Leases are \
             safe there, because they run out, and plain keys are not. Use another store, or add \
             accept=restart to its URL if a lost change does no harm",
            self.connection.store
        );
        Err(Error::new(ErrorKind::Unsupported, sentence))
    }

    fn key_call(&self, key: &Key, operation: KeyOperation, dropped: &CancellationToken) -> KeyCall {
        let (memory, owner) = (Arc::clone(&self.memory), self.owner.clone());
        let reports = self.connection.keeper.downgrade();
        KeyCall::new(&self.connection, memory, reports, key, owner, operation, self.wait, dropped.clone())
    }

    /// An entry of a listing; `None` if the key has none, or is a lease.
    fn listed(&self, key: Key, answer: Result<KeyAnswer, Error>) -> Option<(Key, Result<KeyEntry, Error>)> {
        let entry = match answer {
            Ok(KeyAnswer::Found(seen)) => Ok(KeyEntry::new(&key, &seen?)),
            Ok(KeyAnswer::Denied { why: KeyDenied::Lease(_), .. }) => return None,
            Ok(answer) => Err(self.denied(&key, answer)),
            Err(error) => Err(error),
        };
        Some((key, entry))
    }

    fn denied(&self, key: &Key, answer: KeyAnswer) -> Error {
        let (why, in_doubt) = match answer {
            KeyAnswer::Denied { why, in_doubt } => (why, in_doubt),
            // No operation has the answer of another.
            _ => (KeyDenied::Unavailable(None), true),
        };
        why.error(key, &self.connection.store, in_doubt)
    }
}

fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// Number of concurrent reads of a listing: enough to keep a disk or a connection busy, and few enough to leave room
/// for renewals.
const READS_AT_ONCE: usize = 16;
