//! The URLs of buckets that are accepted, the errors of the others, and the canonical form.
#![cfg(feature = "s3")]

mod support;

use support::{canonical, refused};
use tenure_connect::StoreUrl;

#[test]
fn a_plain_url_is_its_own_canonical_form() {
    for text in [
        "s3://my-bucket",
        "s3://my-bucket/locks",
        "s3://my-bucket/prod/locks?region=eu-west-1",
        "s3://my.bucket/x?endpoint=http://127.0.0.1:9000&region=us-east-1&path-style=true&etags=bare&profile=ci",
        "s3://my-bucket/x?credentials=instance&accept=http",
        "s3://my-bucket/x?ca=/etc/ssl/my-ca.pem&proxy=http://proxy.example.org:3128",
        "s3://my-bucket/x?accept=http&accept=server-clock",
        "s3://minio/x?endpoint=https://minio.example.org&path-style=true",
    ] {
        assert_eq!(canonical(text), text);
    }
    assert_eq!(canonical("S3://my-bucket/locks/"), "s3://my-bucket/locks");
    assert_eq!(
        canonical("s3://my-bucket/my%20locks/100%25?region=a&endpoint=HTTPS://X.org/"),
        "s3://my-bucket/my%20locks/100%25?endpoint=https://x.org&region=a"
    );
}

#[test]
fn an_error_shows_a_valid_url_and_repeats_no_secret() {
    refused("s3:my-bucket", "lacks two slashes");
    refused("s3://", "names no bucket");
    refused("s3:///locks", "names no bucket");
    refused("s3://id:hush@my-bucket", "carries no credentials");
    refused("s3://my-bucket#hush", "cannot have a part after '#'");
    refused("s3://Bucket/x", "not the name of a bucket");
    refused("s3://my-bucket/a//b", "not a prefix");
    refused("s3://my-bucket/../b", "not a prefix");
    refused("s3://my-bucket/100%", "write %25");
    refused("s3://my-bucket/%ff", "UTF-8");
    refused("s3://my-bucket?secret=hush", "no option \"secret\"");
    refused("s3://my-bucket?region=a&region=b", "twice");
    refused("s3://my-bucket?path-style=maybe", "true or false");
    refused("s3://my-bucket?etags=hush", "bare");
    refused("s3://my-bucket?credentials=hush", "instance");
    refused("s3://my-bucket?accept=nfs", "accept can be http");
    refused("s3://my-bucket?endpoint=x.org", "endpoint=https://");
    refused("s3://my-bucket?endpoint=https://id:hush@x.org", "no password");
    refused("s3://my-bucket?endpoint=http://x.org", "accept=http");
    refused(
        "s3://my-bucket?endpoint=https://my-bucket.x.org",
        "write endpoint=https://x.org&path-style=false",
    );
    refused("s3://my-bucket?endpoint=https://x.org/my-bucket", "write endpoint=https://x.org in the URL");
    refused("s3://jobs--use1-az4--x-s3", "use a general purpose bucket");
    refused("s3://my-bucket?ca=my-ca.pem", "not the absolute path");
    refused("s3://my-bucket?proxy=ftp://hush", "not the address of a proxy");
    refused("s3://my-bucket?proxy=http://me:hush@proxy:3128", "carries a password");
    refused("s3://my-bucket?endpoint=http://localhost:9000&proxy=http://x.org:3128", "accept=http");
}

#[test]
fn the_guarantees_of_a_bucket_need_no_credentials() {
    let url: StoreUrl = "s3://my-bucket/locks?region=eu-west-1".parse().unwrap();
    assert!(url.guarantees().unwrap().missing_for_leases().is_empty());
    assert!(url.is_there().unwrap() && !url.has_removal());
}

#[test]
fn a_bucket_can_be_opened_with_the_other_form_of_etags() {
    let url: StoreUrl = "s3://my-bucket/locks?region=eu-west-1".parse().unwrap();
    let (bare, is_bare) = url.with_other_etags().unwrap();
    assert_eq!(
        (bare.to_string().as_str(), is_bare),
        ("s3://my-bucket/locks?region=eu-west-1&etags=bare", true)
    );
    assert_eq!(bare.with_other_etags(), Some((url, false)));
}

#[test]
fn only_a_bucket_has_objects_and_a_url_without_a_path_names_none() {
    let url: StoreUrl = "file:///srv/locks".parse().unwrap();
    assert!(url.open_object().unwrap().is_none());
    let url: StoreUrl = "s3://my-bucket?region=eu-west-1".parse().unwrap();
    let error = url.open_object().unwrap_err().to_string();
    assert!(error.contains("names no object"), "{error}");
}
