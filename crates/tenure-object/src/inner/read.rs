//! Reads. The server sends a value again only if it has changed.

use object_store::{GetOptions, GetResult, ObjectStore};
use tenure_store::{Entry, Key, Reading, Reason, StoreClock, StoreError};

use super::read_cache::CachedValue;
use super::{AnswerMeaning, Dialect, InnerStore, RequestKind, unreadable};
use crate::wire::{Call, ServerAnswer};

impl<D: Dialect> InnerStore<D> {
    pub(super) async fn read(&self, key: &Key) -> Result<Reading, StoreError> {
        let (begun, known) = self.read_cache.begin(key);
        let form_read = self.version_form.begin(key);
        let read = self.read_object(key, known).await;
        match &read {
            Ok((Some(body), _)) => self.read_cache.remember(begun, body),
            _ => self.read_cache.forget(key),
        }
        let (body, answer) = read?;
        // Every grant takes the floor of its token from a read. A read without a time that can be believed fails, so
        // that no grant and no planted record follows from it.
        if let Some(doubt) = answer.doubt() {
            return Err(StoreError::unknown(doubt));
        }
        // Reported only at connect or by a probe: a rule that is added later costs money, but no holder its lease.
        if answer.locked && key.is_reserved() && !key.is_of_slots() && !key.is_of_fences() {
            return Err(StoreError::refused(Reason::Unsupported, self.dialect.retains_every_write()));
        }
        if let Some(body) = &body
            && self.version_form.is_wrong(form_read, &body.version)
        {
            return Err(StoreError::refused(Reason::Unsupported, self.dialect.refuses_current_version()));
        }
        let entry = body.map(|body| {
            let age = if self.judges_ages() { answer.age() } else { None };
            Entry::new(body.value, body.version).with_age(age)
        });
        Ok(Reading::new(entry).with_time(answer.time()))
    }

    /// True if the caller accepted the server's wall clock as a judge.
    fn judges_ages(&self) -> bool {
        self.guarantees.clock >= StoreClock::Ages
    }

    /// Reads the object. Returns the value, and the answer that contained it.
    async fn read_object(
        &self,
        key: &Key,
        known: Option<CachedValue>,
    ) -> Result<(Option<CachedValue>, ServerAnswer), StoreError> {
        let path = self.path(key)?;
        let (call, began) = (Call::default(), self.mark());
        let options = GetOptions {
            if_none_match: known.as_ref().map(|known| self.dialect.etag(&known.etag)),
            extensions: call.extensions(),
            ..GetOptions::default()
        };
        let asked = if known.is_some() { RequestKind::ReadAgain } else { RequestKind::Read };
        let result = self.client.get_opts(&path, options).await;
        let answer = self.answer(asked, &call, result.as_ref().err())?;
        let got = match (self.meaning(asked, &answer, began), known) {
            (AnswerMeaning::Absent, _) => return Ok((None, answer)),
            (AnswerMeaning::Unchanged, Some(known)) => {
                // An object that was written again with equal bytes may have the same ETag.
                let other_etag = answer.etag.as_ref().is_some_and(|etag| !is_same(etag, &known.etag));
                let other_version =
                    answer.generation.as_ref().is_some_and(|version| *version != known.version.as_str());
                if other_etag || other_version {
                    let what = "it reported no change, but for another version than the requested one";
                    return Err(StoreError::unknown(what));
                }
                return Ok((Some(known), answer));
            }
            (AnswerMeaning::Done, _) => result.map_err(unreadable)?,
            (other, _) => return Err(self.error(asked, other, &answer)),
        };
        let body = self.value_of(got).await?;
        Ok((Some(body), answer))
    }

    /// The value that comes with an answer.
    async fn value_of(&self, got: GetResult) -> Result<CachedValue, StoreError> {
        let meta = &got.meta;
        let (path, size) = (&meta.location, meta.size);
        if size > READ_MAX.max(self.guarantees.value_max as u64) {
            let what = format!("{path} has {size} bytes, and was not written by Tenure: inspect it");
            return Err(StoreError::refused(Reason::Damaged, what));
        }
        let version = self.dialect.version(meta.e_tag.clone(), meta.version.clone());
        let (Some(etag), Some(version)) = (meta.e_tag.clone(), version) else {
            let what = format!(
                "{path} was returned without a version: the server there does not speak {}",
                D::PROTOCOL
            );
            return Err(StoreError::refused(Reason::Unsupported, what));
        };
        // A body that was cut off is not a value, although its status was received.
        let value = got.bytes().await.map_err(unreadable)?;
        Ok(CachedValue { value, version, etag })
    }
}

/// Compares two ETags. A component on the way may have changed their form.
fn is_same(one: &str, other: &str) -> bool {
    let bare = |etag: &str| etag.trim_start_matches("W/").trim_matches('"').to_owned();
    bare(one) == bare(other)
}

/// Large enough to read another program's object that was put there by mistake, and to distinguish it from a record.
const READ_MAX: u64 = 1 << 20;
