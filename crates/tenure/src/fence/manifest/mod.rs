//! Many objects under one fence: data objects with the token in their names, and a fenced manifest that names them.

mod contents;
mod data_objects;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tenure_store::{Key, KeyError, Reason, Store};

use super::value::FencedEntry;
use super::{Fence, FenceError, FencedValue, FencingToken, Seal};
use crate::host::entropy::Entropy;
pub use contents::{Manifest, ManifestEntry};
use data_objects::DataObjects;

/// Many objects that change together, under one fence.
///
/// A writer puts data objects under names that contain its token and a random number, so that no two writers ever write the
/// same object. Then it commits a manifest that names them, which is a [`FencedValue`]. Readers see exactly the objects that
/// the manifest names. A stale writer can still put data objects, and its commit is refused: no reader sees them.
///
/// | object | content |
/// | --- | --- |
/// | `NAME/manifest` | the fenced value: the mark of the fence, and the list of entries |
/// | `NAME/<token>-<nonce>/<part>` | a data object, as the writer gave it; created once and never replaced |
///
/// ```
/// use std::sync::Arc;
/// use tenure::{Key, fence::FencedManifest, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // With tenure-object: S3::builder("bucket").exact_names().open()?
/// let table = FencedManifest::on(Arc::new(Memory::new()), Key::parse("tables/sales")?)?;
/// let token = "billing/nightly=7".parse()?;
///
/// let january = table.put(&token, "2026-01.csv", "a,1\n").await?;
/// let february = table.put(&token, "2026-02.csv", "a,2\n").await?;
/// table.commit(&token, &[january.clone(), february]).await?;
///
/// let manifest = table.read().await?.expect("it was committed");
/// assert_eq!(table.get(manifest.entry("2026-02.csv").unwrap()).await?, "a,2\n");
///
/// // The next holder keeps one object, and replaces the other.
/// let newer = "billing/nightly=8".parse()?;
/// let february = table.put(&newer, "2026-02.csv", "a,3\n").await?;
/// table.commit(&newer, &[january, february]).await?;
/// assert_eq!(table.garbage().await?.len(), 1);
///
/// let late = table.put(&token, "2026-03.csv", "late").await?;
/// assert!(table.commit(&token, &[late]).await.unwrap_err().is_stale());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FencedManifest {
    name: Key,
    value: FencedValue,
    objects: DataObjects,
}

impl FencedManifest {
    /// The manifest with this name in a store, and its data objects. In a bucket, use a store with exact names.
    ///
    /// Its futures must be polled inside a tokio runtime that has io and time enabled.
    pub fn on(store: Arc<dyn Store>, name: Key) -> Result<Self, KeyError> {
        let key = Key::from_stored(&format!("{name}/{MANIFEST}"))?;
        let (value, objects) = (FencedValue::on(Arc::clone(&store), key), DataObjects::new(store));
        Ok(Self { name, value, objects })
    }

    /// Name of the manifest.
    pub fn name(&self) -> &Key {
        &self.name
    }

    /// Writes a data object for a later [commit](Self::commit). No reader sees it before.
    ///
    /// `part` follows the rules of keys. The token is not checked here: the commit checks it.
    pub async fn put(
        &self,
        token: &FencingToken,
        part: &str,
        content: impl Into<Bytes>,
    ) -> Result<ManifestEntry, FenceError> {
        let content = content.into();
        let entry = ManifestEntry::new(part, token.token(), Entropy.nonce(), content.len() as u64);
        Key::parse(part).map_err(|error| self.invalid(error.to_string()))?;
        self.objects.create(&self.key_of(&entry)?, content).await?;
        Ok(entry)
    }

    /// Replaces the manifest by these entries, unless a newer token has been there.
    ///
    /// An entry was [put](Self::put) under this token, or the present manifest names it.
    pub async fn commit(&self, token: &FencingToken, entries: &[ManifestEntry]) -> Result<(), FenceError> {
        let mut parts = HashSet::new();
        if let Some(twice) = entries.iter().find(|entry| !parts.insert(entry.part())) {
            return Err(self.invalid(format!("the part {:?} occurs twice in the commit", twice.part())));
        }
        self.check_kept(token, entries).await?;
        self.value.write(token, contents::encode(entries)).await
    }

    /// Raises the fence, and keeps the manifest: the first act of a new holder.
    pub async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        self.value.seal(token).await
    }

    /// The manifest; `None` if nothing was committed yet.
    pub async fn read(&self) -> Result<Option<Manifest>, FenceError> {
        let Some((token, content)) = self.value.read().await? else { return Ok(None) };
        Ok(Some(Manifest { token, entries: self.decode(&content)? }))
    }

    /// The greatest token that was admitted; `None` if there was no commit and no seal yet.
    pub async fn mark(&self) -> Result<Option<FencingToken>, FenceError> {
        self.value.mark().await
    }

    /// Reads a data object. An object that is missing or has another length is an error.
    pub async fn get(&self, entry: &ManifestEntry) -> Result<Bytes, FenceError> {
        let key = self.key_of(entry)?;
        let content = self.objects.read(&key).await?;
        let found = content.as_ref().map(Bytes::len);
        content.filter(|content| content.len() as u64 == entry.length()).ok_or_else(|| {
            let found = found.map_or("is missing".to_owned(), |length| format!("has {length} bytes"));
            self.foreign(format!(
                "the data object {key} {found}, and its entry says {} bytes. Read the manifest again: a newer one may name \
                 other objects",
                entry.length()
            ))
        })
    }

    /// The data objects that no manifest will ever name again: the present one does not, and their tokens are smaller than
    /// the mark, so that no writer can commit them.
    ///
    /// A reader that has read an earlier manifest may still use them. Remove them after a time that is longer than every
    /// reader takes. Tenure removes nothing.
    pub async fn garbage(&self) -> Result<Vec<Key>, FenceError> {
        let found = self.objects.list(&self.name).await?;
        // The entries and the mark are from one read. With a mark from a later one, an object that a commit in between named
        // would look like garbage.
        let Some(FencedEntry { mark, written }) = self.value.look().await? else { return Ok(Vec::new()) };
        let entries = written.map(|(_, content)| self.decode(&content)).transpose()?.unwrap_or_default();
        let named: HashSet<_> = entries.iter().map(ManifestEntry::object).collect();
        let is_garbage = |key: &Key| {
            let object = self.below(key)?;
            (contents::token_of(object)? < mark.token() && !named.contains(object)).then_some(())
        };
        Ok(found.into_iter().filter(|key| is_garbage(key).is_some()).collect())
    }

    /// Accepts that the manifest has a smaller token than before, or is missing: see [`FencedValue::acknowledge`].
    pub fn acknowledge(&self) {
        self.value.acknowledge();
    }

    /// Fails for an entry of an earlier token that the present manifest does not name: it may be garbage that was removed.
    async fn check_kept(&self, token: &FencingToken, entries: &[ManifestEntry]) -> Result<(), FenceError> {
        if let Some(later) = entries.iter().find(|entry| entry.token() > token.token()) {
            let sentence = format!("the object {} was written under a newer token", later.object());
            return Err(self.invalid(sentence));
        }
        if entries.iter().all(|entry| entry.token() == token.token()) {
            return Ok(());
        }
        let present = self.value.look().await?;
        // A stale writer learns that it is stale, and not that its entries are wrong.
        token.check(&self.resource(), present.as_ref().map(|entry| &entry.mark))?;
        let content = present.and_then(|entry| entry.written);
        let named = content.map(|(_, content)| self.decode(&content)).transpose()?.unwrap_or_default();
        let named: HashSet<_> = named.iter().collect();
        match entries.iter().find(|entry| entry.token() < token.token() && !named.contains(entry)) {
            None => Ok(()),
            Some(entry) => Err(self.invalid(format!(
                "the object {} is of an earlier token, and the present manifest does not name it. Put it again",
                entry.object()
            ))),
        }
    }

    fn decode(&self, content: &[u8]) -> Result<Vec<ManifestEntry>, FenceError> {
        contents::decode(content).map_err(|what| self.foreign(what))
    }

    fn key_of(&self, entry: &ManifestEntry) -> Result<Key, FenceError> {
        let key = Key::from_stored(&format!("{}/{}", self.name, entry.object()));
        key.map_err(|error| self.invalid(error.to_string()))
    }

    fn below<'a>(&self, key: &'a Key) -> Option<&'a str> {
        key.as_str().strip_prefix(self.name.as_str())?.strip_prefix('/')
    }

    fn resource(&self) -> String {
        format!("manifest {} on {}", self.name, self.objects.store_name())
    }

    fn invalid(&self, sentence: String) -> FenceError {
        FenceError::refused(self.resource(), Reason::Invalid, sentence)
    }

    fn foreign(&self, what: String) -> FenceError {
        FenceError::Foreign { resource: self.resource(), what }
    }
}

impl Fence for FencedManifest {
    type Write<'w> = &'w [ManifestEntry];
    type Written = ();

    async fn write(&self, token: &FencingToken, entries: &[ManifestEntry]) -> Result<(), FenceError> {
        self.commit(token, entries).await
    }
}

impl Seal for FencedManifest {
    async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        self.seal(token).await
    }
}

impl fmt::Debug for FencedManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FencedManifest").field(&self.resource()).finish()
    }
}

/// The last segment of the key of a manifest. No data object has it: their names have a token and a nonce there.
const MANIFEST: &str = "manifest";
