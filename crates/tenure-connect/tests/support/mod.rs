//! Checks of URLs that the tests of all stores share.

use tenure_connect::StoreUrl;

/// The canonical form of a URL, which must parse to the same URL.
pub(crate) fn canonical(text: &str) -> String {
    let url: StoreUrl = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let canonical = url.to_string();
    assert_eq!(canonical.parse::<StoreUrl>().unwrap(), url, "{canonical} does not come back");
    canonical
}

/// Checks that a URL is refused with this part in the sentence, and that the sentence shows no secret.
#[track_caller]
pub(crate) fn refused(text: &str, part: &str) {
    let sentence = text.parse::<StoreUrl>().expect_err(text).to_string();
    assert!(sentence.contains(part), "{sentence}");
    assert!(!sentence.contains("hush"), "{sentence}");
}
