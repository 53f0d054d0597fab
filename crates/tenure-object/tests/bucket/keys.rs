//! Names that a store must keep apart.

use bytes::Bytes;
use futures_util::StreamExt;
use tenure_store::{Expect, Prefix, Put, Store};
use tenure_testkit::key;

use super::{BucketOf, Cloud};

impl<C: Cloud> BucketOf<C> {
    /// Every legal key comes back from its object and from a listing.
    pub(crate) async fn stores_every_legal_key(&self) {
        stores_every_legal_key(&self.store()).await;
    }

    /// The same, without a prefix.
    pub(crate) async fn stores_every_legal_key_at_the_top(&self) {
        stores_every_legal_key(&C::open(&self.builder_at_the_top())).await;
    }
}

async fn stores_every_legal_key(store: &impl Store) {
    let mut names: Vec<String> = [
        "Ünïcødé/键/🔑",
        " leading",
        "trailing ",
        "two  spaces",
        "100%",
        "%2F",
        "%2e%2e",
        "a%20b",
        "..x",
        "...",
        "dot./b",
        "dot/b",
        "dots../b",
        "dots..",
        "end.",
        "end./.b",
        "end.record./b",
        "end.record/b",
        "~",
        "~root",
        "#1",
        "what?",
        "a&b=c",
        "a+b",
        "back\\slash",
        "\"quoted\"",
        "'q'",
        "$(echo)",
        "*",
        "<a>",
        "{b}",
        "[c]",
        "^",
        "`",
        "|",
        ":",
        ";",
        "@",
        ",",
        "=",
        "!",
        "a/b",
        "a",
        "a.record",
        "a.record/b",
        "a.record_/b",
        "\u{202e}back",
        "\u{fffe}",
        "x\u{ffff}",
        "\u{e000}",
        "\u{10ffff}",
        "e\u{301}",
        "é",
    ]
    .map(str::to_owned)
    .into();
    // Every printable ASCII character in the middle of a name.
    names.extend((b' '..=b'~').filter(|byte| *byte != b'/').map(|byte| format!("x/{}y", char::from(byte))));
    names.sort();
    for name in &names {
        let value = Bytes::from(format!("of {name}"));
        let put = store.put(&key(name), value.clone(), Expect::Absent).await;
        assert!(matches!(put, Ok(Put::Applied(_))), "{name:?}: {put:?}");
        let entry = store.get(&key(name)).await.unwrap().entry;
        assert_eq!(entry.unwrap().value, value, "{name:?}");
    }
    let mut listed: Vec<String> =
        store.list(&Prefix::all()).map(|key| key.unwrap().to_string()).collect().await;
    listed.sort();
    assert_eq!(listed, names);
}
