use std::time::Duration;

use tenure_core::Holder;
use tenure_store::Prefix;

use crate::{Creation, Error, KeyEntries, KeyEntry, Replacement, Revision};

/// The plain keys of a store, for one owner, for blocking threads. Cheap to clone: a clone is the same owner.
#[derive(Clone, Debug)]
#[must_use = "keys do nothing until one of their calls is made"]
pub struct Keys(pub(super) crate::Keys);

impl Keys {
    same! { choices of Keys:
        owner(name: Holder, secret: impl AsRef<[u8]>);
        waiting(limit: Duration);
    }

    same! { answers of Keys:
        owns(entry: &KeyEntry) -> bool;
    }

    same! { waits of Keys:
        create_if_absent(key: impl AsRef<str>, value: &str, ttl: impl Into<Option<Duration>>) -> Result<Creation, Error>;
        compare_and_set(
            key: impl AsRef<str>,
            revision: Revision,
            value: &str,
            ttl: impl Into<Option<Duration>>
        ) -> Result<Replacement, Error>;
        get(key: impl AsRef<str>) -> Result<Option<KeyEntry>, Error>;
        renew(key: impl AsRef<str>) -> Result<KeyEntry, Error>;
        release(key: impl AsRef<str>) -> Result<(), Error>;
        list(prefix: &Prefix) -> Result<KeyEntries, Error>;
    }
}
