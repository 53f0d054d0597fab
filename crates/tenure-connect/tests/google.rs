//! The URLs of buckets of Google that are accepted, the errors of the others, and the canonical form.
#![cfg(feature = "gs")]

mod support;

use support::{canonical, refused};
use tenure_connect::StoreUrl;

#[test]
fn a_plain_url_is_its_own_canonical_form() {
    for text in [
        "gs://my-bucket",
        "gs://my_bucket.example.org/prod/locks",
        "gs://my-bucket/x?endpoint=https://storage.europe-west3.rep.googleapis.com",
        "gs://my-bucket/x?credentials=instance&ca=/etc/ssl/my-ca.pem&proxy=http://proxy.example.org:3128",
        "gs://my-bucket/x?accept=http&accept=server-clock",
    ] {
        assert_eq!(canonical(text), text);
    }
    assert_eq!(canonical("GS://my-bucket/my%20locks/"), "gs://my-bucket/my%20locks");
}

#[test]
fn an_error_shows_a_valid_url_and_repeats_no_secret() {
    refused("gs:my-bucket", "lacks two slashes: write it like gs://my-bucket/locks");
    refused("gs:///locks", "names no bucket");
    refused("gs://me:hush@my-bucket", "GOOGLE_APPLICATION_CREDENTIALS");
    refused("gs://Bucket", "not the name of a bucket");
    refused("gs://my-bucket/a//b", "not a prefix");
    refused("gs://my-bucket?token=hush", "no option \"token\": it has endpoint");
    refused("gs://my-bucket?region=eu", "no option \"region\"");
    refused("gs://my-bucket?credentials=hush", "instance");
    refused("gs://my-bucket?endpoint=https://my-bucket.storage.googleapis.com", "names the bucket");
    refused("gs://my-bucket?endpoint=http://x.org", "accept=http");
}

#[test]
fn the_guarantees_of_a_bucket_need_no_credentials() {
    let url: StoreUrl = "gs://my-bucket/locks?credentials=instance".parse().unwrap();
    let guarantees = url.guarantees().unwrap();
    assert!(guarantees.missing_for_leases().is_empty() && guarantees.unique_versions);
    assert_eq!(guarantees.write_interval.as_millis(), 1_100);
    assert!(url.is_there().unwrap() && !url.has_removal() && url.with_other_etags().is_none());
    assert_eq!((url.identity().as_str(), url.resolved()), ("gs://my-bucket/locks", url.clone()));
}
