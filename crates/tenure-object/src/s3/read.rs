//! Reads. The server sends a value again only if it has changed.

use object_store::{GetOptions, GetResult, ObjectStore};
use tenure_store::{Entry, Key, Reading, Reason, StoreClock, StoreError, Version};

use super::classify::{self, AnswerMeaning, RequestKind};
use super::read_cache::CachedValue;
use super::{S3Inner, unreadable};
use crate::wire::{Call, ServerAnswer};

impl S3Inner {
    pub(super) async fn get(&self, key: &Key) -> Result<Reading, StoreError> {
        let (begun, known) = self.read_cache.begin(key);
        let quoting_read = self.etag_quoting.begin(key);
        let read = self.read(key, known).await;
        match &read {
            Ok((Some(body), _)) => self.read_cache.remember(begun, body),
            _ => self.read_cache.forget(key),
        }
        let (body, answer) = read?;
        // Reported only at connect or by a probe: a rule that is added later costs money, but no holder its lease.
        if answer.locked && key.is_reserved() {
            let what =
                format!("the bucket {:?} keeps every write: {}", self.bucket, classify::RETENTION_RULE);
            return Err(StoreError::refused(Reason::Unsupported, what));
        }
        if let Some(body) = &body
            && self.etag_quoting.is_wrong(quoting_read, &body.version)
        {
            return Err(StoreError::refused(Reason::Unsupported, classify::wrong_quoting(self.bare_etags)));
        }
        let entry = body.map(|body| {
            let age = if self.judges_ages() { answer.age_of(body.modified) } else { None };
            Entry::new(body.value, body.version).with_age(age)
        });
        Ok(Reading::new(entry).with_time(answer.time()))
    }

    /// True if the caller accepted the server's wall clock as a judge.
    fn judges_ages(&self) -> bool {
        self.guarantees.clock >= StoreClock::Ages
    }

    /// Reads the object. Returns the value, and the answer that contained it.
    async fn read(
        &self,
        key: &Key,
        known: Option<CachedValue>,
    ) -> Result<(Option<CachedValue>, ServerAnswer), StoreError> {
        let path = self.path(key)?;
        let call = Call::default();
        let options = GetOptions {
            if_none_match: known.as_ref().map(|known| self.etag(&known.version)),
            extensions: call.extensions(),
            ..GetOptions::default()
        };
        let asked = if known.is_some() { RequestKind::ReadAgain } else { RequestKind::Read };
        let result = self.client.get_opts(&path, options).await;
        let answer = self.answer(asked, &call, result.as_ref().err())?;
        let got = match (classify::classify(asked, &answer), known) {
            (AnswerMeaning::Absent, _) => return Ok((None, answer)),
            (AnswerMeaning::Unchanged, Some(known)) => {
                if answer.etag.as_ref().is_some_and(|etag| !is_same(etag, &known.version)) {
                    let what = "it reported no change, but for another version than the requested one";
                    return Err(StoreError::unknown(what));
                }
                return Ok((Some(known), answer));
            }
            (AnswerMeaning::Done, _) => result.map_err(unreadable)?,
            (other, _) => return Err(self.error(asked, other, &answer)),
        };
        let body = read_value(got, &answer).await?;
        Ok((Some(body), answer))
    }
}

/// The value that comes with an answer.
async fn read_value(got: GetResult, answer: &ServerAnswer) -> Result<CachedValue, StoreError> {
    let (path, size) = (&got.meta.location, got.meta.size);
    if size > READ_MAX {
        let what = format!("{path} has {size} bytes, and was not written by Tenure: inspect it");
        return Err(StoreError::refused(Reason::Damaged, what));
    }
    let Some(version) = got.meta.e_tag.clone().map(Version::new) else {
        let what = format!("{path} was returned without an ETag: the server there does not speak S3");
        return Err(StoreError::refused(Reason::Unsupported, what));
    };
    // A body that was cut off is not a value, although its status was received.
    let value = got.bytes().await.map_err(unreadable)?;
    Ok(CachedValue { value, version, modified: answer.modified })
}

/// Compares an ETag with a version. A component on the way may have changed its form.
fn is_same(etag: &str, version: &Version) -> bool {
    let bare = |etag: &str| etag.trim_start_matches("W/").trim_matches('"').to_owned();
    bare(etag) == bare(version.as_str())
}

/// Large enough to read another program's object that was put there by mistake, and to distinguish it from a record.
const READ_MAX: u64 = 1 << 20;
