use tenure_store::{Expect, Key, Put, Store, StoreError};

/// The forms in which a server accepts an ETag: with quotes, without them, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quoting {
    /// Result of a conditional replace with quotes.
    pub quoted: Taken,
    /// Result without quotes.
    pub bare: Taken,
    /// True if the URL of this store says `etags=bare`.
    pub bare_is_used: bool,
}

/// A server's treatment of one form of ETags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Taken {
    /// The server compares it.
    Compared,
    /// It never matches.
    NeverMatches,
    /// The server ignores it: it replaces any version.
    Ignored,
    /// The server gave no clear answer.
    Unclear,
}

impl Quoting {
    /// The consequence for the URL, as a sentence.
    pub fn sentence(&self) -> String {
        let words = |bare: bool| if bare { "without quotes" } else { "with quotes" };
        let (used, other) = self.used_and_other();
        let (this, that) = (words(self.bare_is_used), words(!self.bare_is_used));
        match (used, other) {
            (Taken::Compared, Taken::Compared) => "ETags work with quotes and without".to_owned(),
            (Taken::Compared, Taken::Ignored) => {
                format!(
                    "ETags work {this}, as this URL has them; {that} they are ignored, so keep it this way"
                )
            }
            (Taken::Compared, _) => format!("ETags work {this}, as this URL has them, and not {that}"),
            (_, Taken::Compared) if self.bare_is_used => {
                format!("ETags work {that} alone: take etags=bare out of the URL")
            }
            (_, Taken::Compared) => format!("ETags work {that} alone: write etags=bare in the URL"),
            (Taken::Ignored, Taken::Ignored) => "ETags are ignored, with quotes or without".to_owned(),
            _ => "ETags work neither with quotes nor without".to_owned(),
        }
    }

    fn used_and_other(&self) -> (Taken, Taken) {
        if self.bare_is_used { (self.bare, self.quoted) } else { (self.quoted, self.bare) }
    }

    /// True if only the form that is not used works.
    pub(crate) fn is_the_wrong_way(&self) -> bool {
        let (used, other) = self.used_and_other();
        used != Taken::Compared && other == Taken::Compared
    }
}

/// Makes the conditional replace that leases make, and one that the server must refuse.
pub(crate) async fn taken(store: &dyn Store, key: &Key) -> Taken {
    match try_replaces(store, key).await {
        Ok(taken) => taken,
        // A server that does not accept the form refuses it.
        Err(StoreError::Refused(_)) => Taken::NeverMatches,
        Err(_) => Taken::Unclear,
    }
}

async fn try_replaces(store: &dyn Store, key: &Key) -> Result<Taken, StoreError> {
    let Put::Applied(first) = store.put(key, "quoting, created".into(), Expect::Absent).await? else {
        return Ok(Taken::Unclear);
    };
    let expect = Expect::Version(first.version);
    let Put::Applied(_) = store.put(key, "quoting, replaced".into(), expect.clone()).await? else {
        return Ok(Taken::NeverMatches);
    };
    match store.put(key, "quoting, must never be stored".into(), expect).await? {
        Put::Conflict(_) => Ok(Taken::Compared),
        Put::Applied(_) => Ok(Taken::Ignored),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(quoted: Taken, bare: Taken, bare_is_used: bool) -> String {
        Quoting { quoted, bare, bare_is_used }.sentence()
    }

    #[test]
    fn the_sentence_says_which_form_the_url_must_name() {
        use Taken::{Compared, Ignored, NeverMatches};
        assert_eq!(sentence(Compared, Compared, false), "ETags work with quotes and without");
        assert_eq!(
            sentence(Compared, NeverMatches, false),
            "ETags work with quotes, as this URL has them, and not without quotes"
        );
        assert_eq!(
            sentence(NeverMatches, Compared, false),
            "ETags work without quotes alone: write etags=bare in the URL"
        );
        assert_eq!(
            sentence(Compared, NeverMatches, true),
            "ETags work with quotes alone: take etags=bare out of the URL"
        );
        assert!(sentence(Compared, Ignored, false).ends_with("they are ignored, so keep it this way"));
        assert!(sentence(Ignored, Ignored, false).starts_with("ETags are ignored"));
        assert!(sentence(NeverMatches, NeverMatches, false).contains("neither"));
        assert!(Quoting { quoted: NeverMatches, bare: Compared, bare_is_used: false }.is_the_wrong_way());
        assert!(!Quoting { quoted: Compared, bare: Compared, bare_is_used: false }.is_the_wrong_way());
    }
}
