//! Opening a store: valid and invalid settings, both without a request.

use std::time::Duration;

use tenure_store::{Reason, StoreClock};

use super::*;
use crate::OpenError;

type Variables<'a> = &'a [(&'a str, &'a str)];

fn open(builder: &GoogleBuilder, variables: Variables<'_>) -> Result<Google, OpenError> {
    builder.open_in(&variables.iter().copied().collect())
}

#[track_caller]
fn refused(builder: &GoogleBuilder, variables: Variables<'_>, reason: Reason, part: &str) {
    let error = open(builder, variables).expect_err(part);
    let sentence = error.to_string();
    assert!(sentence.contains(part), "{sentence}");
    assert_eq!(error.reason(), reason, "{sentence}");
    assert!(!sentence.contains("hush") && !format!("{error:?}").contains("hush"), "{sentence}");
}

fn bucket() -> GoogleBuilder {
    Google::builder("my-bucket").prefix("locks")
}

#[test]
fn the_name_of_a_store_says_where_it_is_and_not_who_asks() {
    let builder = Google::builder("my-bucket").prefix("prod/my locks").token("hush");
    let store = open(&builder, &[]).unwrap();
    assert_eq!(store.to_string(), "gs://my-bucket/prod/my%20locks");
    assert_eq!(store.offered_by(), Some("Google Cloud Storage"));
    let text = format!("{store:?} {builder:?} {builder}");
    assert!(!text.contains("hush"), "{text}");
    let instance = open(&bucket().instance_credentials(), &[]).unwrap();
    assert_eq!(instance.to_string(), "gs://my-bucket/locks", "its credentials say who asks");
    let elsewhere = bucket().endpoint("http://127.0.0.1:4443").token("hush");
    let store = open(&elsewhere, &[]).unwrap();
    assert_eq!(store.to_string(), "gs://my-bucket/locks?endpoint=http://127.0.0.1:4443");
    assert_eq!(store.offered_by(), None);
    let regional = bucket().endpoint("https://storage.europe-west3.rep.googleapis.com").token("hush");
    assert_eq!(open(&regional, &[]).unwrap().offered_by(), Some("Google Cloud Storage"));
}

#[test]
fn an_invalid_bucket_and_an_invalid_prefix_are_reported() {
    let long = "x".repeat(64);
    for name in ["", "ab", "Bucket", "-abc", "abc-", "_abc", "a..b", ".abc", &long] {
        refused(&Google::builder(name).token("t"), &[], Reason::Invalid, "not the name of a bucket");
    }
    for name in ["my_bucket-1", "my.bucket", &format!("{}.example.org", "x".repeat(63))] {
        assert!(Google::builder(name).check().is_ok(), "{name}");
    }
    for prefix in ["/", "a/", "a//b", "..", "a\nb", "a\\b"] {
        refused(&Google::builder("bucket").prefix(prefix), &[], Reason::Invalid, "not a prefix");
    }
}

#[test]
fn an_endpoint_that_is_not_encrypted_is_for_this_machine_unless_it_is_accepted() {
    let far = bucket().token("t").endpoint("http://gcs.example.org");
    refused(&far, &[], Reason::Invalid, "accept=http");
    assert!(open(&far.accept_http(), &[]).is_ok());
}

#[test]
fn an_endpoint_that_names_the_bucket_is_refused() {
    for (endpoint, server) in [
        ("https://my-bucket.storage.googleapis.com", "https://storage.googleapis.com"),
        ("http://127.0.0.1:4443/my-bucket", "http://127.0.0.1:4443"),
    ] {
        let words = format!("write endpoint={server} in the URL");
        refused(&bucket().token("t").endpoint(endpoint), &[], Reason::Invalid, &words);
    }
}

#[test]
fn the_guarantees_suffice_for_leases_at_one_write_per_second() {
    let promises = bucket().guarantees();
    assert_eq!(promises.missing_for_leases(), <[&str; 0]>::default());
    assert_eq!((promises.clock, promises.unique_versions), (StoreClock::Floors, true));
    assert_eq!(promises.write_interval, Duration::from_millis(1100));
    let elsewhere = bucket().endpoint("http://127.0.0.1:4443");
    assert_eq!(elsewhere.guarantees().write_interval, Duration::from_millis(1100), "nothing is known of it");
    assert_eq!(elsewhere.write_interval(Duration::ZERO).guarantees().write_interval, Duration::ZERO);
    assert_eq!(bucket().accept_server_clock().guarantees().clock, StoreClock::Ages);
}

#[test]
fn only_the_number_of_a_generation_is_a_version() {
    let dialect = GoogleDialect { bucket: "b".to_owned(), is_google: true };
    let version = |generation: &str| dialect.version(Some("\"etag\"".into()), Some(generation.into()));
    assert_eq!(version("1731760000000000"), Some(Version::new("1731760000000000")));
    for wrong in ["0", "00", "", "-1", "+1", "\"1\"", "1.5", "abc", "99999999999999999999"] {
        assert_eq!(version(wrong), None, "{wrong}: as a condition it could mean something else");
    }
    assert_eq!(dialect.version(Some("\"etag\"".into()), None), None, "equal bytes have equal ETags");
    let condition = dialect.condition(&Version::new("7"));
    assert_eq!((condition.version.as_deref(), condition.e_tag), (Some("7"), None));
}

#[test]
fn without_credentials_nothing_is_opened_and_no_metadata_server_is_tried() {
    refused(&bucket(), &[], Reason::Denied, "GOOGLE_APPLICATION_CREDENTIALS");
    refused(&bucket(), &[("HOME", "/nonexistent")], Reason::Denied, "credentials=instance");
    refused(&bucket(), &[("GCE_METADATA_HOST", "127.0.0.1:1")], Reason::Denied, "there are no credentials");
}

#[test]
fn wrong_credentials_are_reported_before_a_request_and_without_their_secret() {
    let file = |name: &str, text: &str| {
        let path = std::env::temp_dir().join(format!("tenure-object-google-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let one = |name: &'static str, value: &str, part: &str| {
        refused(&bucket(), &[(name, value)], Reason::Denied, part);
    };
    one(
        "GOOGLE_APPLICATION_CREDENTIALS",
        "/nonexistent",
        "/nonexistent (GOOGLE_APPLICATION_CREDENTIALS) cannot be",
    );
    let key = r#"{"type":"service_account","client_email":"me@x","private_key_id":"1","private_key":"hush"}"#;
    let path = file("key", key);
    for name in ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"] {
        one(name, &path, "has a private_key that is not an RSA key in PEM format");
    }
    one("GOOGLE_SERVICE_ACCOUNT_KEY", key, "GOOGLE_SERVICE_ACCOUNT_KEY has a private_key that is not");
    one("GOOGLE_SERVICE_ACCOUNT_KEY", "hush", "not contain credentials in Google's JSON format");
    let user = r#"{"type":"authorized_user","client_id":"1","client_secret":"hush","refresh_token":"hush"}"#;
    one("GOOGLE_SERVICE_ACCOUNT_KEY", user, "contains the login of a user");
    one("GOOGLE_OAUTH_ACCESS_TOKEN", "hush\n", "GOOGLE_OAUTH_ACCESS_TOKEN contains a line break");
    refused(&bucket().token("hush\n"), &[], Reason::Denied, "the access token contains a line break");
    let host = [("GCE_METADATA_HOST", "http://hush@x")];
    refused(&bucket().instance_credentials(), &host, Reason::Invalid, "GCE_METADATA_HOST is not a host");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_token_of_the_environment_comes_before_a_key_file_and_a_login() {
    let environment: Variables<'_> = &[
        ("CLOUDSDK_AUTH_ACCESS_TOKEN", "t"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent"),
        ("HOME", "/nonexistent"),
    ];
    assert!(open(&bucket(), environment).is_ok());
    assert!(open(&bucket(), &environment[1..]).is_err(), "a file that is named must be there");
}

#[test]
fn the_login_of_a_user_is_found_where_gcloud_writes_it() {
    let home = std::env::temp_dir().join(format!("tenure-object-login-{}", std::process::id()));
    let directory = home.join(".config/gcloud");
    std::fs::create_dir_all(&directory).unwrap();
    let user = r#"{"type":"authorized_user","client_id":"1","client_secret":"hush","refresh_token":"hush"}"#;
    std::fs::write(directory.join("application_default_credentials.json"), user).unwrap();
    let opened = open(&bucket(), &[("HOME", home.to_str().unwrap())]);
    let chosen = open(&bucket(), &[("CLOUDSDK_CONFIG", directory.to_str().unwrap()), ("HOME", "/")]);
    std::fs::remove_dir_all(&home).unwrap();
    assert!(opened.is_ok() && chosen.is_ok(), "{opened:?} {chosen:?}");
}
